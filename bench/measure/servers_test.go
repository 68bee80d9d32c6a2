// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"
	"time"
)

func TestServerTime(t *testing.T) {
	const rest = " S 1 77 77 0 -1 4194560 1 0 0 0 120 34 0 0 20 0 9 0 55 1 1"
	for _, test := range []struct {
		stat    string
		want    time.Duration
		wantErr bool
	}{
		{stat: "77 (kube-apiserver)" + rest, want: 1540 * time.Millisecond},
		{stat: "77 (etcd)" + rest, want: 1540 * time.Millisecond},
		{stat: "77 (operator)" + rest},
		{stat: "77 (a) (b etcd)" + rest},
		{stat: "77 (etcd) S 1", wantErr: true},
		{stat: "77 (etcd) S 1 77 77 0 -1 4194560 1 0 0 0 x 34 0", wantErr: true},
		{stat: "nothing", wantErr: true},
	} {
		got, err := serverTime(test.stat)
		if (err != nil) != test.wantErr || err == nil && got != test.want {
			t.Errorf("%q: %s, error %v, want %s, error %t", test.stat, got, err, test.want, test.wantErr)
		}
	}
}
