// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package external

import (
	"fmt"
	"testing"
)

// everyKnowledge calls a function with each knowledge that can be.
func everyKnowledge(do func(k knowledge)) {
	flag := []bool{false, true}
	for claim := range claimants {
		for owner := range storedOwners {
			for resource := range presences {
				for id := range sources {
					for word := range wordNobody + 1 {
						for bits := range 1 << 10 {
							b := func(i int) bool { return flag[bits>>i&1] }
							k := knowledge{
								claim: claim, owner: owner, resource: resource, id: id, word: word,
								deleting: b(0), stores: b(1), chosen: b(2), edited: b(3), recorded: b(4), right: b(5), consent: b(6), gives: b(7), creates: b(8), manages: b(9),
							}
							if k.possible() {
								do(k)
							}
						}
					}
				}
			}
		}
	}
}

// possible reports whether a knowledge does not contradict itself.
func (k knowledge) possible() bool {
	switch {
	case k.stores && k.claim != claimNone, // there are none
		k.resource != isThere && k.owner != ownerUnknown,
		k.owner == ownerNone && !k.stores,
		k.owner == ownerFormer && k.claim == claimNone,
		k.id == idUnknown && (k.resource != isAbsent || k.claim != claimNone || k.chosen),
		k.id == idProven && k.chosen, k.id == idNamed && !k.chosen,
		k.edited && k.mine() && !k.stores,
		k.consent && (k.claim == claimNone && k.owner != ownerLiving || k.claim == claimMine),
		k.word == wordOwner && (k.mine() || k.claim == claimNone && k.owner != ownerOther && k.owner != ownerLiving):
		return false
	}
	return true
}

// rules are what no decision may break, whatever is known.
var rules = []struct {
	name   string
	broken func(k knowledge, d decision) bool
}{
	{"nothing is changed, published or deleted unless the system or the claim says that it is ours", func(k knowledge, d decision) bool {
		return (d.next == nextManage || d.next == nextDelete) && !k.mine() && k.id != idProven
	}},
	{"what the system shows to be another's is neither changed nor deleted", func(k knowledge, d decision) bool {
		return (d.next == nextManage || d.next == nextDelete || d.next == nextClaim || d.next == nextTransfer) && k.foreign()
	}},
	{"a living holder or owner loses nothing without its consent", func(k knowledge, d decision) bool {
		return (d.next == nextAdopt || d.next == nextTransfer || d.next == nextClaim || d.next == nextShow) && (k.claim == claimLiving || k.owner == ownerLiving) && !k.consent
	}},
	{"nothing is adopted or shown by what the taker alone has written", func(k knowledge, d decision) bool {
		return (d.next == nextAdopt || d.next == nextTransfer || d.next == nextShow) && !k.right && !k.consent
	}},
	{"what had another owner takes a word about that owner besides", func(k knowledge, d decision) bool {
		return (d.next == nextAdopt || d.next == nextTransfer) && (k.owner == ownerOther || k.claim == claimGone || k.claim == claimFormer) && k.word != wordOwner && !k.consent
	}},
	{"what others have claimed is not created", func(k knowledge, d decision) bool {
		return d.next == nextCreate && k.claim != claimNone && k.claim != claimMine
	}},
	{"nothing is created or adopted against the policy", func(k knowledge, d decision) bool {
		return d.next == nextCreate && !k.creates || (d.next == nextAdopt || d.next == nextTransfer) && !k.manages
	}},
	{"who has given a resource away does nothing with it", func(k knowledge, d decision) bool {
		return k.gives && d.next != nextGive && d.next != nextLeave
	}},
	{"what is deleted and shown to be ours alone does not stay", func(k knowledge, d decision) bool {
		return k.deleting && k.resource == isThere && k.mine() && !k.gives && !k.foreign() && k.owner != ownerNone && d.next != nextDelete
	}},
	{"what is ours is managed", func(k knowledge, d decision) bool {
		return !k.deleting && k.resource == isThere && k.mine() && !k.gives && !k.foreign() && d.next != nextManage && d.next != nextClaim
	}},
	{"a name that a person has mistyped makes nothing", func(k knowledge, d decision) bool {
		return d.next == nextCreate && k.id == idWished && !k.recorded && !k.right && k.claim != claimMine
	}},
	{"a deletion decides about a deletion", func(k knowledge, d decision) bool {
		return k.deleting != (d.next == nextDelete || d.next == nextLeave) && d.next != nextWait && d.next != nextAbsent
	}},
}

// Each combination of what is known has a decision with a reason, and none breaks a rule.
func TestDecideEverything(t *testing.T) {
	n, reasons := 0, map[decision]int{}
	everyKnowledge(func(k knowledge) {
		d := decide(&k)
		n++
		reasons[d]++
		if d.next == 0 || d.why == "" {
			t.Fatalf("no decision for %+v", k)
		}
		for _, r := range rules {
			if r.broken(k, d) {
				t.Fatalf("%s: %+v is decided as %d, %s", r.name, k, d.next, d.why)
			}
		}
	})
	if n < 50_000 {
		t.Errorf("%d combinations", n)
	}
	t.Logf("%d combinations, %d decisions with reasons", n, len(reasons))
}

// What an object says about itself changes no decision to one that touches what is of others: whatever the
// annotations say, the next step is the same, or one that leaves everything alone.
func TestHintsTakeNothing(t *testing.T) {
	touches := func(d decision) bool {
		switch d.next {
		case nextManage, nextClaim, nextAdopt, nextTransfer, nextShow, nextDelete:
			return true
		}
		return false
	}
	everyKnowledge(func(k knowledge) {
		if k.right || k.consent || k.mine() || k.id == idProven {
			return
		}
		if d := decide(&k); touches(d) {
			t.Fatalf("%+v is decided as %d, %s", k, d.next, d.why)
		}
	})
}

// The rules find a decision that believes what the taker has written.
func TestRulesCanFail(t *testing.T) {
	wrong := map[string]func(k *knowledge) decision{
		"believes the record": func(k *knowledge) decision {
			if k.recorded && k.resource == isThere && !k.deleting {
				return decision{nextManage, whyMine}
			}
			return decide(k)
		},
		"believes the word": func(k *knowledge) decision {
			if k.word == wordOwner && k.resource == isThere && !k.deleting && k.manages && !k.gives {
				return decision{nextAdopt, whyRight}
			}
			return decide(k)
		},
		"deletes by the id": func(k *knowledge) decision {
			if k.deleting && k.resource == isThere && k.id == idWished {
				return decision{nextDelete, whyMine}
			}
			return decide(k)
		},
		"creates what is claimed": func(k *knowledge) decision {
			if k.resource == isAbsent && !k.deleting && k.creates && !k.gives && k.chosen {
				return decision{nextCreate, whyUncreated}
			}
			return decide(k)
		},
	}
	for name, decide := range wrong {
		t.Run(name, func(t *testing.T) {
			found := ""
			everyKnowledge(func(k knowledge) {
				for _, r := range rules {
					if found == "" && r.broken(k, decide(&k)) {
						found = fmt.Sprintf("%s: %+v", r.name, k)
					}
				}
			})
			if found == "" {
				t.Error("no rule is broken")
			}
		})
	}
}
