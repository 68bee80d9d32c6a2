// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package external

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/ctrlkit/ctrlkit/internal/engine/answer"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
)

func named(uid string) *metav1.ObjectMeta { return &metav1.ObjectMeta{UID: types.UID(uid)} }

func TestNameOf(t *testing.T) {
	const uid = "6f1c1e5e-1e64-4a8b-9d8f-2f1b7a3c4d5e"
	for _, tt := range []struct {
		rules NameRules
		uid   string
		want  string // or what the error has
	}{
		{NameRules{}, uid, "6f1c1e5e1e644a8b9d8f2f1b7a3c4d5e"},
		{NameRules{Prefix: "gke-"}, uid, "gke-6f1c1e5e1e644a8b9d8f2f1b7a3c4d5e"},
		{NameRules{Prefix: "gke-", MaxLength: 36}, uid, "gke-6f1c1e5e1e644a8b9d8f2f1b7a3c4d5e"},
		{NameRules{Prefix: "gke-", MaxLength: 35}, uid, "gke-cdvp3jj2o2zqtjyq6nprzs67gn3nygo"},
		{NameRules{Prefix: "gke-", MaxLength: 20}, uid, "gke-cdvp3jj2o2zqtjyq"},
		{NameRules{Prefix: "gke-", MaxLength: 19}, uid, "15 characters are left, and at least 16 are needed"},
		{NameRules{Prefix: "gke-", MaxLength: 2}, uid, "0 characters are left"},
		{NameRules{Prefix: strings.Repeat("x", 48)}, uid, "15 characters are left"},
		{NameRules{}, "", "without a UID"},
	} {
		got, err := tt.rules.NameOf(named(tt.uid))
		if err != nil {
			got = err.Error()
		}
		if err == nil && got != tt.want || err != nil && !strings.Contains(got, tt.want) {
			t.Errorf("%+v: %q, want %q", tt.rules, got, tt.want)
		}
	}
}

// uids draws UIDs as API servers choose them, and others.
var uids = rapid.OneOf(
	rapid.StringMatching("[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"),
	rapid.StringMatching("[0-9a-f-]{1,40}"),
	rapid.StringN(1, 80, -1),
)

func TestNamesKeepTheRules(t *testing.T) {
	letters := regexp.MustCompile("^[0-9a-z]*$")
	rapid.Check(t, func(t *rapid.T) {
		rules := NameRules{
			Prefix:    rapid.StringMatching("[a-z-]{0,20}").Draw(t, "prefix"),
			MaxLength: rapid.IntRange(0, 300).Draw(t, "length"),
		}
		longest := rules.MaxLength
		if longest == 0 {
			longest = 63
		}
		a, b := uids.Draw(t, "a"), uids.Draw(t, "b")
		name, err := rules.NameOf(named(a))
		if room := longest - len(rules.Prefix); (err != nil) != (room < 16) {
			t.Fatalf("%d characters are left, and the error is %v", room, err)
		}
		if err != nil {
			return
		}
		rest, ok := strings.CutPrefix(name, rules.Prefix)
		if !ok || len(name) > longest || len(rest) < 16 || !letters.MatchString(rest) {
			t.Fatalf("%+v: %q", rules, name)
		}
		again, _ := rules.NameOf(named(a))
		other, _ := rules.NameOf(named(b))
		if again != name || (other == name) != (a == b) {
			t.Fatalf("%q and %q have the names %q and %q, then %q", a, b, name, other, again)
		}
	})
}

func TestInvalidIdentityIsRefused(t *testing.T) {
	for _, tt := range []struct {
		name     string
		identity Identity[*corev1.ConfigMap]
		want     string // empty if it is valid
	}{
		{"none", Identity[*corev1.ConfigMap]{}, "no identity"},
		{"name", ByName[*corev1.ConfigMap](nil), "without a function"},
		{"tag", ByTag[*corev1.ConfigMap](0), "say how long"},
		{"valid tag", ByTag[*corev1.ConfigMap](time.Second), ""},
		{"token", ByToken[*corev1.ConfigMap](), ""},
		{"nothing", ByNothing[*corev1.ConfigMap](), ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := New("Bucket", nil, Options[*corev1.ConfigMap]{Identity: tt.identity}).Err
			if got := fmt.Sprint(err); tt.want == "" && err != nil || !strings.Contains(got, tt.want) {
				t.Errorf("got %s", got)
			}
		})
	}
}

func TestCreation(t *testing.T) {
	obj := &corev1.ConfigMap{ObjectMeta: *named("uid")}
	for want, identity := range map[Creation]Identity[*corev1.ConfigMap]{
		{Name: "bucket"}: ByName(func(*corev1.ConfigMap) (string, error) { return "bucket", nil }),
		{Token: "uid-1"}: ByToken[*corev1.ConfigMap](),
		{Tag: "uid"}:     ByTag[*corev1.ConfigMap](time.Second),
		{}:               ByNothing[*corev1.ConfigMap](),
	} {
		if got, err := identity.Creation(obj); got != want || err != nil {
			t.Errorf("%+v, %v, want %+v", got, err, want)
		}
	}
	if _, err := (Identity[*corev1.ConfigMap]{}).Creation(obj); err == nil {
		t.Error("the zero identity has a creation")
	}
}

func TestRefused(t *testing.T) {
	cause := errors.New("no")
	err := fmt.Errorf("create: %w", Refused(cause))
	if !answer.IsRefused(err) || !errors.Is(err, cause) || err.Error() != "create: no" {
		t.Errorf("%v", err)
	}
	if answer.IsRefused(cause) || answer.IsRefused(nil) || Refused(nil) != nil {
		t.Error("an error that is not marked is refused")
	}
}
