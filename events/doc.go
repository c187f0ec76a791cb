// Package events says what has happened, and what a log that keeps it must promise.
// It never decides anything and never touches the world: adapters implement its ports, aggregates fold its facts.
package events
