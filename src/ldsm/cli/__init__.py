"""The commands of ``ldsm``, a file each, and what they share: options, data, the terminal."""
