// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package install_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/internal/tools/rings"
)

// Whatever is interrupted or lost, and however seldom replicas run, the API server trusts all replicas that
// are ready.
func TestAlwaysTrusted(t *testing.T) {
	for seed := range uint64(4) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			if seed > 0 {
				rings.Test(t, "lets three years pass once more")
			}
			inWorld(t, func(t *testing.T, w *world) { w.live(rand.New(rand.NewPCG(seed, 0))) })
		})
	}
}

// live lets three years pass.
func (w *world) live(random *rand.Rand) {
	last := map[*replica]time.Time{}
	run := func(r *replica) {
		last[r] = time.Now()
		if err := r.pass(); err != nil && !errors.Is(err, errCrashed) {
			w.Fatal(err)
		}
	}
	for range 3 {
		run(w.start())
	}
	for end := time.Now().Add(3 * 365 * day); time.Now().Before(end) && !w.Failed(); time.Sleep(time.Duration(random.IntN(int(8 * day)))) {
		w.verify()
		switch random.IntN(20) {
		case 0:
			must(w.T, w.user.Delete(w.ctx, w.secret()))
		case 1:
			s := w.secret()
			key := slices.Sorted(maps.Keys(s.Data))[random.IntN(len(s.Data))]
			s.Data[key] = s.Data[key][:random.IntN(len(s.Data[key])/2)]
			must(w.T, w.user.Update(w.ctx, s))
		case 2:
			w.replicas[random.IntN(3)].dead = true
		}
		for n, r := range w.replicas {
			if r.dead {
				r = w.start()
				w.replicas = slices.Delete(w.replicas, len(w.replicas)-1, len(w.replicas))
				w.replicas[n] = r
			}
			if r.crash, r.writes = 0, 0; random.IntN(10) == 0 {
				r.crash = random.IntN(13) - 6
			}
			if random.IntN(2) == 0 || last[r].IsZero() || time.Since(last[r]) > 10*day {
				run(r)
			}
		}
		if _, err := w.replicas[0].GetCertificate(nil); err == nil && !w.replicas[0].dead {
			continue
		}
		run(w.replicas[1]) // so that there is a Secret
	}
}

// When all have trusted a new authority, and then one has its old caBundle back and can't be written, as
// after the rollback of a release, what the old authority has signed stays served.
func TestTrustThatIsLost(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a := w.start()
		a.mustPass()
		old := w.authorities()[0]
		crd := carts()
		must(t, w.user.Get(w.ctx, client.ObjectKeyFromObject(crd), crd))
		before := crd.Spec.Conversion.Webhook.ClientConfig.CABundle
		for len(w.authorities()) == 1 {
			time.Sleep(5 * day)
			a.mustPass()
		}
		must(t, w.user.Get(w.ctx, client.ObjectKeyFromObject(crd), crd))
		crd.Spec.Conversion.Webhook.ClientConfig.CABundle = before
		must(t, w.user.Update(w.ctx, crd))
		refuse := true
		a.before = func(int) {
			if refuse {
				time.Sleep(time.Second)
				must(t, touch(w)) // so that the write of the definition is a conflict
			}
		}
		for range 3 {
			time.Sleep(day)
			_ = a.pass() //nolint:errcheck // it is what is served that counts
			if err := a.leaf().CheckSignatureFrom(old); err != nil {
				t.Fatalf("what is served is not trusted by the webhook that has lost the new authority: %v", err)
			}
		}
		refuse = false
		a.mustPass()
		time.Sleep(day)
		a.mustPass()
		if err := a.leaf().CheckSignatureFrom(w.authorities()[0]); err != nil {
			t.Errorf("the new authority does not sign: %v", err)
		}
	})
}
