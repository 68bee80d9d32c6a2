// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"crypto/sha256"
	"fmt"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// minter makes the values that are unique in a cluster: UIDs, generated names, addresses and ports.
// Equal seeds and equal requests give equal values.
type minter struct {
	seed       uint64
	minted     map[string]int // how often bytes were minted, by purpose
	clusterIPs int
}

// mint returns bytes that depend only on the seed, on their purpose, and on how often bytes were
// minted for that purpose. They do not depend on the order in which different objects are created.
func (m *minter) mint(what ...string) [sha256.Size]byte {
	key := strings.Join(what, " ")
	m.minted[key]++
	return sha256.Sum256(fmt.Appendf(nil, "%d %s %d", m.seed, key, m.minted[key]))
}

// newUID mints the UID of an object, in the form of a random UUID.
func (m *minter) newUID(k *kind, namespace, name string) types.UID {
	b := m.mint("uid", k.storage.String(), namespace, name)
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return types.UID(fmt.Sprintf("%x-%x-%x-%x-%x", b[0:4], b[4:6], b[6:8], b[8:10], b[10:16]))
}

// nameLetters are the letters of generated names: without vowels and similar digits, as in
// k8s.io/apimachinery/pkg/util/rand.
const nameLetters = "bcdfghjklmnpqrstvwxz2456789"

// maxGeneratedLength is how much of a generateName the real server keeps, so that a name with its
// suffix is a DNS label (k8s.io/apiserver/pkg/storage/names).
const maxGeneratedLength = 63 - 5

func (m *minter) generateName(k *kind, namespace, base string) string {
	if len(base) > maxGeneratedLength {
		base = base[:maxGeneratedLength]
	}
	b := m.mint("name", k.storage.String(), namespace, base)
	suffix := make([]byte, 5)
	for i := range suffix {
		suffix[i] = nameLetters[int(b[i])%len(nameLetters)]
	}
	return base + string(suffix)
}

// Where the addresses and ports of Services begin, as with the default flags of kube-apiserver.
const (
	firstNodePort = 30000
	clusterNet    = "10.0."
)

// allocate returns an address ("clusterIP") or a port ("nodePort") that no other Service has.
func (m *minter) allocate(kind string) string {
	m.clusterIPs++
	if kind == "nodePort" {
		return strconv.Itoa(firstNodePort + m.clusterIPs)
	}
	return clusterNet + strconv.Itoa(m.clusterIPs/250) + "." + strconv.Itoa(m.clusterIPs%250+2)
}
