package commands

import "github.com/sluice-platform/sluice/events"

// DefinitionCommand is every request about one workflow definition.
//
//sumtype:decl
type DefinitionCommand interface {
	Command
	definition()
}

// PublishVersion makes checked content a version. The content is already a blob of that hash.
// The same content again is the version that it already is.
type PublishVersion struct {
	Hash  events.Hash
	Size  int64
	Tasks int32
}

// Validate accepts every value: the gateway has parsed the content.
func (PublishVersion) Validate() error { return nil }
func (PublishVersion) definition()     {}

// CodeUnknownVersion says that a definition has no such version.
const CodeUnknownVersion = "unknown_version"
