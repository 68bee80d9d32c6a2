// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"maps"
	"slices"
	"strings"

	v1 "github.com/ctrlkit/ctrlkit/examples/05_user/api/v1"
)

// Grants are privileges by what they are for, as SQL has it: "`shop`.*". A role is a privilege for
// nothing.
type Grants map[string][]string

// Privileges that a server may report, and that no User can ask for.
const (
	allPrivileges = "ALL PRIVILEGES"
	grantOption   = "GRANT OPTION"
)

// everything is what allPrivileges stands for, as far as a User can ask for it.
var everything = []string{
	"SELECT", "INSERT", "UPDATE", "DELETE", "CREATE", "DROP", "REFERENCES", "INDEX", "ALTER", "CREATE TEMPORARY TABLES",
	"LOCK TABLES", "EXECUTE", "CREATE VIEW", "SHOW VIEW", "CREATE ROUTINE", "ALTER ROUTINE", "EVENT", "TRIGGER",
}

// wantedGrants returns what a User wants. Target writes a database and a table as the server does.
func wantedGrants(user *v1.User, target func(database, table string) string) Grants {
	wanted := Grants{}
	for _, grant := range user.Spec.Grants {
		on := target(grant.Database, grant.Table)
		for _, privilege := range grant.Privileges {
			wanted.add(on, string(privilege))
		}
	}
	return wanted
}

// difference returns the least that turns the present grants into the wanted ones.
func difference(present, wanted Grants) (missing, excess Grants) {
	missing, excess = Grants{}, Grants{}
	for on, privileges := range present {
		if slices.Contains(privileges, allPrivileges) && len(wanted[on]) > 0 {
			privileges = slices.Concat(privileges, everything)
			privileges = slices.DeleteFunc(privileges, func(p string) bool { return p == allPrivileges })
		}
		excess.add(on, without(privileges, wanted[on])...)
	}
	for on, privileges := range wanted {
		if !slices.Contains(present[on], allPrivileges) {
			missing.add(on, without(privileges, present[on])...)
		}
	}
	return missing, excess
}

func (g Grants) add(on string, privileges ...string) {
	for _, p := range privileges {
		if i, found := slices.BinarySearch(g[on], p); !found {
			g[on] = slices.Insert(g[on], i, p)
		}
	}
}

// String returns the grants in a line, always in the same order.
func (g Grants) String() string {
	var parts []string
	for _, on := range slices.Sorted(maps.Keys(g)) {
		part := strings.Join(g[on], ", ")
		if on != "" {
			part += " on " + on
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, "; ")
}

func without(all, some []string) []string {
	return slices.DeleteFunc(slices.Clone(all), func(s string) bool { return slices.Contains(some, s) })
}

// parseGrant adds what a line of SHOW GRANTS has. The line may have a hash of the password, which
// is not kept.
func (g Grants) parseGrant(line string) {
	rest, ok := strings.CutPrefix(line, "GRANT ")
	if !ok || strings.HasPrefix(rest, "PROXY ") {
		return
	}
	privileges, recipient := rest, ""
	if i := outside(rest, " TO "); i >= 0 {
		privileges, recipient = rest[:i], rest[i:]
	}
	on := ""
	if i := outside(privileges, " ON "); i >= 0 {
		privileges, on = privileges[:i], privileges[i+len(" ON "):]
	}
	for privileges != "" {
		next := privileges
		if i := outside(privileges, ","); i >= 0 {
			next, privileges = privileges[:i], privileges[i+1:]
		} else {
			privileges = ""
		}
		if next = strings.TrimSpace(next); next != "USAGE" {
			g.add(on, next)
		}
	}
	if on != "" && strings.Contains(recipient, " WITH GRANT OPTION") {
		g.add(on, grantOption)
	}
}

// outside returns where a separator is outside of quotes and parentheses, or -1.
func outside(s, separator string) int {
	quoted, depth := false, 0
	for i := range len(s) {
		switch c := s[i]; {
		case c == '`':
			quoted = !quoted
		case quoted:
		case c == '(':
			depth++
		case c == ')':
			depth--
		}
		if !quoted && depth == 0 && strings.HasPrefix(s[i:], separator) {
			return i
		}
	}
	return -1
}
