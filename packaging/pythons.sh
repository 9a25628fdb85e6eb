# Source this file. `pythons` prints the interpreters of this machine, one per version from 3.10 on.
pythons() {
    local minor candidate
    for minor in 10 11 12 13 14 15; do
        for candidate in "python3.$minor" "${PYENV_ROOT:-$HOME/.pyenv}/versions/3.$minor".*/bin/"python3.$minor"; do
            # The name may exist without a Python, as pyenv's shims do.
            if "$candidate" -c "import ensurepip, venv" 2> /dev/null; then
                command -v "$candidate"
                break
            fi
        done
    done
}
