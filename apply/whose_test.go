// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package apply

import "testing"

// Whatever an object shows: the label alone proves nothing, nothing of others is touched, and what is
// deleted has a proof.
func TestWhose(t *testing.T) {
	var all []evidence
	for i := range 3 * 3 * 4 * 16 {
		all = append(all, evidence{
			controller: holder(i % 3), label: holder(i / 3 % 3), note: noting(i / 9 % 4),
			applied: i/36%2 == 1, owned: i/72%2 == 1, adopt: i/144%2 == 1, elsewhere: i/288%2 == 1,
		})
	}
	for _, e := range all {
		v := e.wanted()
		ok, why := e.deletable()
		proved := e.controller == holderUs || e.controller == holderNone && (e.note == notedSame || e.note == notedOpen)
		for law, holds := range map[string]bool{
			"what others control or label is refused":   v == verdictRefuse || e.controller != holderOther && e.label != holderOther,
			"without a word, a label is no proof":       v == verdictRefuse || e.controller == holderUs || e.adopt || e.applied || e.note == notedSame,
			"what is ours has an owner, or needs none":  v != verdictOurs || e.controller == holderUs || !e.owned,
			"what is ours and unchanged has our label":  v != verdictOurs || e.label == holderUs,
			"a child of its owner is never refused":     e.controller != holderUs || e.label == holderOther || v != verdictRefuse,
			"a restored child of a wanted name is kept": e.controller != holderNone || e.label != holderUs || !e.applied || v != verdictRefuse,
			"what is deleted has a proof":               !ok || proved && e.applied && e.label == holderUs && !e.elsewhere,
			"what is ours by UID can be deleted":        ok || !proved || !e.applied || e.label != holderUs || e.elsewhere,
			"what is left with our label is explained":  ok || (why != "") == (e.label == holderUs && e.controller != holderOther),
		} {
			if !holds {
				t.Errorf("%s: %+v is %d, deletable: %t %q", law, e, v, ok, why)
			}
		}
	}
}

func TestTrackedText(t *testing.T) {
	const text = `["ClusterRole.rbac.authorization.k8s.io role","ConfigMap ns/a 1-2","Secret b 3"]`
	all, err := parseTracked(text)
	if err != nil || all.String() != text || len(all) != 3 || all[Ref{Kind: "ConfigMap", Namespace: "ns", Name: "a"}] != "1-2" {
		t.Errorf("%v %v", all, err)
	}
}
