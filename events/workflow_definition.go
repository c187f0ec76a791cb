package events

// DefinitionEvent is every fact about one workflow definition; its stream is definition/tenant/name.
//
//sumtype:decl
type DefinitionEvent interface {
	Event
	definition()
}

// VersionPublished says that a version now exists and will never change. Emitted by commands.PublishVersion.
type VersionPublished struct {
	Version int64 `avro:"version"` // 1 for the first, then one more each time
	Hash    Hash  `avro:"hash"`    // of the canonical content, which is a blob of that name
	Size    int64 `avro:"size"`    // bytes of the canonical content
	Tasks   int32 `avro:"tasks"`
}

// EventType is the wire name.
func (VersionPublished) EventType() Type { return "workflow.version_published" }
func (VersionPublished) definition()     {}

// Named is the blob that holds the content.
func (e VersionPublished) Named() Hash { return e.Hash }

func init() { register[VersionPublished](1) }
