// Package memory implements ports within this process: the log, blobs, the queue, slots and views, for tests, for the
// simulation, and where losing them is allowed. It never keeps anything beyond the process, and what it does depends
// on nothing but its calls and the clock it is given.
package memory
