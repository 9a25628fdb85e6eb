"""Words, bigrams and sub-words of a corpus: which are features, their counts and weights."""
