package sluice

import (
	"bufio"
	"io"
	"strconv"
	"strings"
	"time"
)

// lineBytesMax bounds a line of a stream: an event with its payload inline is far below it.
const lineBytesMax = 4 << 20

// Message is one event of a stream (the event-stream format of the HTML standard, section 9.2).
type Message struct {
	ID    string // the last that the stream gave; opaque
	Event string // "message" where the stream names none
	Data  []byte
}

// sseReader parses a stream.
type sseReader struct {
	lines *bufio.Scanner
	id    string        // of the last message that was whole: where to read on after a break
	named string        // what the next one will have
	retry time.Duration // what the server asked to wait before the next attempt; 0: nothing
}

func newSSEReader(r io.Reader) *sseReader {
	s := &sseReader{lines: bufio.NewScanner(r)}
	s.lines.Buffer(make([]byte, 0, 4096), lineBytesMax)
	return s
}

// next returns the next message; io.EOF when the stream has ended between two, and what stood half is dropped, as the
// standard wants it.
func (s *sseReader) next() (m Message, err error) {
	m.Event = "message"
	var data strings.Builder
	some := false
	for s.lines.Scan() {
		line := s.lines.Text()
		if line == "" {
			s.id = s.named
			if !some {
				m.Event = "message"
				continue
			}
			m.ID, m.Data = s.id, []byte(strings.TrimSuffix(data.String(), "\n"))
			return m, nil
		}
		name, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch name {
		case "event":
			m.Event = value
		case "data":
			some = true
			data.WriteString(value + "\n")
		case "id":
			if !strings.ContainsRune(value, 0) {
				s.named = value
			}
		case "retry":
			if ms, err := strconv.Atoi(value); err == nil && ms >= 0 {
				s.retry = time.Duration(ms) * time.Millisecond
			}
		}
	}
	if err := s.lines.Err(); err != nil {
		return Message{}, err
	}
	return Message{}, io.EOF
}
