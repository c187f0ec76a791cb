package simulation

import "crypto/sha256"

func sha(b []byte) [sha256.Size]byte { return sha256.Sum256(b) }
