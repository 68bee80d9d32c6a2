// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package external

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/ctrlkit/ctrlkit/internal/engine/track"
)

// Each object that comes back after its time calls its system: none waits a second time.
func TestEachObjectTriesAfterOnePause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCalls(Calls[configMap]{})
		for i := range 30 {
			obj, n := in(""), 0
			obj.UID, obj.Name = types.UID(fmt.Sprint("u", i)), fmt.Sprint("o", i)
			for range 5 {
				_ = c.do(t.Context(), obj, "observe", answers(&n, errUnreachable))
			}
			time.Sleep(waitOf(t, c.do(t.Context(), obj, "observe", answers(&n, nil))).Every)
			if err := c.do(t.Context(), obj, "observe", answers(&n, nil)); err != nil || n != 6 {
				t.Errorf("%s: after its pause %v, and %d calls", obj.Name, err, n)
			}
		}
	})
}

// The wait for a system that is left alone says what it has answered last, and holds still while
// only the numbers of requests differ.
func TestTheWaitSaysWhatHasFailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, n := newCalls(Calls[configMap]{Failures: 2, Pause: time.Minute}), 0
		says := func(answer, want string) {
			t.Helper()
			_ = c.do(t.Context(), in("a"), "observe", answers(&n, errors.New(answer)))
			if wait := waitOf(t, c.do(t.Context(), in("a"), "observe", answers(&n, nil))); !strings.HasSuffix(wait.For, want) {
				t.Errorf("waits for %s, want %s", wait.For, want)
			}
			time.Sleep(time.Minute)
		}
		_ = c.do(t.Context(), in("a"), "observe", answers(&n, errors.New("request 1: out of order")))
		says("request 2: out of order", ", which has failed 2 times in a row: request 1: out of order")
		says("request 3: out of order", ": request 1: out of order")
		says("the token is refused", ": the token is refused")
	})
}

// A change of what Connect has read ends that a system is left alone. That another object is read,
// or the same again, does not.
func TestChangedCredentialsAreTriedAtOnce(t *testing.T) {
	secret := func(uid types.UID, version string) *readings {
		r := newReadings()
		r.note(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{UID: uid, ResourceVersion: version}})
		return r
	}
	for name, test := range map[string]struct {
		then *readings
		want int
	}{
		"changed": {secret("s", "2"), 3}, "the same": {secret("s", "1"), 2}, "another one": {secret("other", "7"), 2},
	} {
		synctest.Test(t, func(t *testing.T) {
			c, n := newCalls(Calls[configMap]{Failures: 2, System: systemOf}), 0
			c.connectedWith(in("a"), secret("s", "1"))
			for range 2 {
				_ = c.do(t.Context(), in("a"), "observe", answers(&n, errors.New("401 Unauthorized")))
			}
			c.connectedWith(in("a"), test.then)
			_ = c.do(t.Context(), in("a"), "observe", answers(&n, nil))
			if n != test.want {
				t.Errorf("%s: %d calls, want %d", name, n, test.want)
			}
		})
	}
}

// Other credentials are tried in the reconcile that reads them, also where a Pool dials with them.
func TestAPoolTriesChangedCredentialsAtOnce(t *testing.T) {
	for version, want := range map[string]int{"1": 2, "2": 3} {
		synctest.Test(t, func(t *testing.T) {
			c, n, pool := newCalls(Calls[configMap]{Failures: 2}), 0, &Pool[string]{}
			reconcile := func(version string, answer error) error {
				err := c.connect(t.Context(), in("a"), func(ctx context.Context) error {
					secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "x", UID: "s", ResourceVersion: version}}
					reader := track.NewClient(fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithObjects(secret).Build(), &track.Record{})
					if err := reader.Get(ctx, client.ObjectKeyFromObject(secret), secret); err != nil {
						return err
					}
					_, err := pool.Get(ctx, "key", secret.ResourceVersion, func(context.Context) (string, error) { return version, nil })
					return err
				})
				if err != nil {
					return err
				}
				return c.do(t.Context(), in("a"), "observe", answers(&n, answer))
			}
			for range 2 {
				_ = reconcile("1", errors.New("401 Unauthorized"))
			}
			if err := reconcile(version, nil); n != want || (err == nil) != (want == 3) {
				t.Errorf("version %s: %d calls, want %d: %v", version, n, want, err)
			}
		})
	}
}
