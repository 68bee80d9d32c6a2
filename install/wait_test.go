// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package install_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/install"
)

func TestWaitForADefinitionOfOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		start := time.Now()
		go func() {
			time.Sleep(3 * time.Second)
			if err := c.client.Create(c.ctx, widgets(fields("v1", "size"))); err != nil {
				t.Error(err)
			}
		}()
		must(t, c.installer(install.Options{}).Wait(c.ctx, "widgets.example.com"))
		if waited := time.Since(start); waited < 3*time.Second {
			t.Errorf("it waited %s", waited)
		}
	})
}

func TestWaitEndsWithTheReason(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		i := c.installer(install.Options{Timeout: 5 * time.Second})
		lacks := func() string {
			late := (*install.WaitError)(nil)
			err := i.Wait(c.ctx, "widgets.example.com")
			if !errors.As(err, &late) || !errors.Is(err, context.DeadlineExceeded) || late.Definition != "widgets.example.com" {
				t.Fatalf("error %v", err)
			}
			return late.Lacks
		}
		if got, want := lacks(), "it does not exist"; got != want {
			t.Errorf("lacks %q, want %q", got, want)
		}
		c.mustInstall(1, install.Options{}, widgets(fields("v1", "size")))
		taken := `{"status":{"conditions":[{"type":"NamesAccepted","status":"False","reason":"ShortNamesConflict","message":"\"w\" is already in use"},{"type":"Established","status":"True"}]}}`
		must(t, c.client.Status().Patch(c.ctx, c.get(), client.RawPatch("application/merge-patch+json", []byte(taken))))
		if got, want := lacks(), `NamesAccepted is False: ShortNamesConflict: "w" is already in use`; got != want {
			t.Errorf("lacks %q, want %q", got, want)
		}
	})
}

func TestWrongOptions(t *testing.T) {
	for _, options := range []install.Options{{}, {Name: "a", Revision: "new"}} {
		if _, err := install.New(newCluster(t).config, options); err == nil {
			t.Errorf("%+v is accepted", options)
		}
	}
	if _, err := install.New(newCluster(t).config, install.Options{Name: "a", Revision: "1"}); err == nil || !strings.Contains(err.Error(), "such as 1.4.0") {
		t.Errorf("the revision 1: %v", err)
	}
}
