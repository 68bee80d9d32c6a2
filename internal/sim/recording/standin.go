// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"math/rand/v2"
	"strings"
)

// standIns has what stands for values. Without the key, which is not written anywhere, a stand-in
// says of its value only the length, the white space around it, and whether it is a number.
type standIns struct {
	key   []byte
	known map[string]string
	taken map[string]bool
}

const (
	digits  = "0123456789"
	letters = "abcdefghijklmnopqrstuvwxyz" + digits
)

// tries is how often another stand-in is made if one is taken: there are few short ones.
const tries = 100

// of returns what stands for a value: as many bytes, the same for the same value, and, if there are
// enough of that length, another one for another value. White space around the value stays, because
// operators trim it.
func (s *standIns) of(text string) string {
	core := strings.TrimSpace(text)
	if core == "" {
		return text
	}
	if _, ok := s.known[core]; !ok {
		if s.known == nil {
			s.known, s.taken = map[string]string{}, map[string]bool{}
		}
		standIn := ""
		for n := range tries {
			if standIn = s.made(core, n); standIn != core && !s.taken[standIn] {
				break
			}
		}
		s.known[core], s.taken[standIn] = standIn, true
	}
	return strings.Replace(text, core, s.known[core], 1)
}

// made makes the n-th stand-in of a value.
func (s *standIns) made(core string, n int) string {
	mac := hmac.New(sha256.New, s.key)
	mac.Write(binary.BigEndian.AppendUint64(nil, uint64(n))) //nolint:errcheck // writing to a hash never fails
	mac.Write([]byte(core))                                  //nolint:errcheck // the same
	source := rand.New(rand.NewChaCha8([sha256.Size]byte(mac.Sum(nil))))
	first, others := letters[:26], letters // a name stays one, and a number
	if strings.Trim(core, digits) == "" {
		first, others = digits[1:], digits
	}
	b := make([]byte, len(core))
	for i := range b {
		b[i] = others[source.IntN(len(others))]
	}
	b[0] = first[source.IntN(len(first))]
	return string(b)
}
