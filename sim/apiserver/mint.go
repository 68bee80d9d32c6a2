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

// minter makes what is unique in a cluster: UIDs, generated names, addresses and ports. Equal seeds
// and equal requests make equal ones.
type minter struct {
	seed       uint64
	minted     map[string]int // how often something was minted, by what it is for
	clusterIPs int
}

// mint returns bytes that depend only on the seed, on what they are for, and on how often something was minted for that: so the order in
// which objects are created does not matter.
func (m *minter) mint(what ...string) [sha256.Size]byte {
	key := strings.Join(what, " ")
	m.minted[key]++
	return sha256.Sum256(fmt.Appendf(nil, "%d %s %d", m.seed, key, m.minted[key]))
}

// newUID mints the UID of an object.
func (m *minter) newUID(k *kind, namespace, name string) types.UID {
	b := m.mint("uid", k.storage.String(), namespace, name)
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return types.UID(fmt.Sprintf("%x-%x-%x-%x-%x", b[0:4], b[4:6], b[6:8], b[8:10], b[10:16]))
}

// nameLetters are those that the real server uses in generated names.
const nameLetters = "bcdfghjklmnpqrstvwxz2456789"

// maxGeneratedLength is what is kept of a generateName.
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

// The first of what is allocated to Services.
const (
	firstNodePort = 30000
	clusterNet    = "10.0."
)

// allocate hands out what is unique in a cluster: addresses and ports of Services.
func (m *minter) allocate(kind string) string {
	m.clusterIPs++
	if kind == "nodePort" {
		return strconv.Itoa(firstNodePort + m.clusterIPs)
	}
	return clusterNet + strconv.Itoa(m.clusterIPs/250) + "." + strconv.Itoa(m.clusterIPs%250+2)
}
