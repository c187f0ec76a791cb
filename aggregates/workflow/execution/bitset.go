package execution

import "math/bits"

// bitset is a set of ordinals. What it is too short for, and what is negative, is not in it.
type bitset []uint64

func wordsOf(tasks int32) int { return (int(tasks) + 63) / 64 }

func (b bitset) has(i int32) bool {
	w := int(uint32(i) >> 6)
	return w < len(b) && b[w]&(1<<(uint32(i)&63)) != 0
}

func (b bitset) set(i int32) {
	if w := int(uint32(i) >> 6); w < len(b) {
		b[w] |= 1 << (uint32(i) & 63)
	}
}

func (b bitset) clear(i int32) {
	if w := int(uint32(i) >> 6); w < len(b) {
		b[w] &^= 1 << (uint32(i) & 63)
	}
}

func (b bitset) each(f func(int32)) {
	for w, word := range b {
		for ; word != 0; word &= word - 1 {
			f(int32(w<<6 + bits.TrailingZeros64(word)))
		}
	}
}

func (b bitset) count() (n int32) {
	for _, word := range b {
		n += int32(bits.OnesCount64(word))
	}
	return n
}
