// Package simulation runs the whole workflow domain in one loop, in an order that one seed decides, and lets fail
// whatever may fail. It never starts a goroutine, reads a clock or draws from anything but its seed.
package simulation
