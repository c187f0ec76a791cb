// Package commands holds everything that the platform can be asked to do, as plain structs.
// It decides nothing and knows no store: aggregates decide, commands/handle appends.
package commands
