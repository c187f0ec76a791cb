package commands

// The codes of the kernel's refusals; a domain's stand in its own file. A code never changes its meaning.
const (
	CodeInvalid          = "invalid"                // see the violations
	CodeNotFound         = "not_found"              //
	CodeVersionMismatch  = "version_mismatch"       // If-Match names another version
	CodeKeyReused        = "idempotency_key_reused" // same key, other request
	CodeTooManyKeys      = "too_many_keys"          // a stream remembers at most KeysMax keys
	CodeBusy             = "busy"                   // too many writers at one stream for too long
	CodeNewerStream      = "newer_stream"           // the stream holds events of a newer build
	CodeParked           = "command_parked"         // deciding it failed on our side; it is kept for an operator
	CodeReasonRequired   = "reason_required"        // an operator's act needs a reason
	CodeIncarnation      = "incarnation_changed"    // the log was restored; what was sent belongs to the old one
	CodeTooManyRefs      = "too_many_refs"          // a decision needed more than RefRoundsMax rounds of references
	CodeMissingReference = "missing_reference"      // immutable data that the log names cannot be read
)
