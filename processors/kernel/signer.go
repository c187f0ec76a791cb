package kernel

import "github.com/sluice-platform/sluice/events"

// Signer signs what must not be changed later without notice. The same message gets the same signature for as long
// as the key is the same.
type Signer interface {
	// Key is the SHA-256 of the public key. It is part of what a seal signs, so it is asked before.
	Key() events.Hash
	// Sign returns the Ed25519 signature of message.
	Sign(message []byte) []byte
}
