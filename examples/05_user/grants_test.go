// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func sorted(all []string) []string { return slices.Sorted(slices.Values(all)) }

// What MySQL 8, MariaDB 10.11 and the embedded server print.
func TestParseGrant(t *testing.T) {
	for _, tt := range []struct {
		line string
		want Grants
	}{
		{"GRANT USAGE ON *.* TO `u`@`%`", Grants{}},
		{"GRANT USAGE ON *.* TO `u`@`%` IDENTIFIED BY PASSWORD '*C547E75493C5'", Grants{}},
		{"GRANT SELECT, INSERT ON `shop`.* TO `u`@`%`", Grants{"`shop`.*": {"INSERT", "SELECT"}}},
		{"GRANT CREATE TEMPORARY TABLES ON `my\\_db`.* TO `u`@`%`", Grants{"`my\\_db`.*": {"CREATE TEMPORARY TABLES"}}},
		{"GRANT ALL PRIVILEGES ON `shop`.* TO `u`@`%` WITH GRANT OPTION", Grants{"`shop`.*": {"ALL PRIVILEGES", "GRANT OPTION"}}},
		{"GRANT SELECT, SELECT (`a`, `b`), UPDATE ON `shop`.`t` TO `u`@`%`", Grants{"`shop`.`t`": {"SELECT", "SELECT (`a`, `b`)", "UPDATE"}}},
		{"GRANT SELECT ON `a TO b ON c, d`.* TO `u`@`%`", Grants{"`a TO b ON c, d`.*": {"SELECT"}}},
		{"GRANT EXECUTE ON PROCEDURE `shop`.`p` TO `u`@`%`", Grants{"PROCEDURE `shop`.`p`": {"EXECUTE"}}},
		{"GRANT `r1`@`%` TO `u`@`%`", Grants{"": {"`r1`@`%`"}}},
		{"GRANT `r1` TO `u`@`%` WITH ADMIN OPTION", Grants{"": {"`r1`"}}},
		{"GRANT PROXY ON ''@'%' TO 'root'@'localhost' WITH GRANT OPTION", Grants{}},
		{"SET DEFAULT ROLE `r1` FOR `u`@`%`", Grants{}},
	} {
		got := Grants{}
		got.parseGrant(tt.line)
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.line, diff)
		}
	}
}

func TestDifference(t *testing.T) {
	const on = "`shop`.*"
	for _, tt := range []struct {
		name                             string
		present, wanted, missing, excess Grants
	}{
		{"nothing", Grants{}, Grants{}, Grants{}, Grants{}},
		{"equal", Grants{on: {"SELECT"}}, Grants{on: {"SELECT"}}, Grants{}, Grants{}},
		{"all, nothing wanted", Grants{on: {"ALL PRIVILEGES", "GRANT OPTION"}}, Grants{}, Grants{}, Grants{on: {"ALL PRIVILEGES", "GRANT OPTION"}}},
		{"all, all but one wanted", Grants{on: {"ALL PRIVILEGES"}}, Grants{on: sorted(everything[1:])}, Grants{}, Grants{on: everything[:1]}},
		{"all, all wanted", Grants{on: {"ALL PRIVILEGES"}}, Grants{on: sorted(everything)}, Grants{}, Grants{}},
	} {
		missing, excess := difference(tt.present, tt.wanted)
		if diff := cmp.Diff([]Grants{tt.missing, tt.excess}, []Grants{missing, excess}); diff != "" {
			t.Errorf("%s: missing and excess (-want +got):\n%s", tt.name, diff)
		}
	}
}
