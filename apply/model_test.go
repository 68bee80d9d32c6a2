// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ctrlkit/ctrlkit/apply"
)

// A model says what exists after Shops have been reconciled. It is the documentation of package
// apply, as a program that knows no API server.
type model struct {
	shops   []modelShop
	objects map[string]*modelObject // by slot
}

type modelShop struct {
	incarnation int // counts how often it was created
	wanted      map[string]wish
}

// A wish is an object of a set.
type wish struct {
	data     map[string]string
	policies []apply.Policy
	wave     int
}

func (w wish) has(p apply.Policy) bool { return slices.Contains(w.policies, p) }

// A modelObject is one that exists.
type modelObject struct {
	set        string // "shop-0", empty if it is of no set
	controller string // "shop-0 1": with the incarnation of the owner
	kept       bool   // by the policy Keep
	annotation string // of the policy
	applied    string // what was applied last
	data       map[string]*modelField
}

type modelField struct {
	value      string
	ours, rest bool // who manages it: the set, other clients
}

func newModel(shops int) *model {
	m := &model{objects: map[string]*modelObject{}}
	for range shops {
		m.shops = append(m.shops, modelShop{incarnation: 1, wanted: map[string]wish{}})
	}
	return m
}

func shopName(i int) string { return fmt.Sprintf("shop-%d", i) }

// settle reconciles all Shops until nothing changes. It returns for each whether it fails.
func (m *model) settle() []bool {
	failed := make([]bool, len(m.shops))
	for range 10 {
		before := m.String()
		for i := range m.shops {
			failed[i] = m.reconcile(i)
		}
		if m.String() == before {
			break
		}
	}
	return failed
}

func (m *model) reconcile(i int) (failed bool) {
	shop := m.shops[i]
	slots := slices.SortedFunc(maps.Keys(shop.wanted), func(a, b string) int {
		return cmp.Or(cmp.Compare(shop.wanted[a].wave, shop.wanted[b].wave), cmp.Compare(a, b))
	})
	for n, slot := range slots {
		if failed && shop.wanted[slot].wave != shop.wanted[slots[n-1]].wave {
			break // later waves wait
		}
		failed = !m.ensure(i, slot, shop.wanted[slot]) || failed
	}
	if failed {
		return true // and nothing is pruned
	}
	for slot, obj := range m.objects {
		if _, wanted := shop.wanted[slot]; wanted || obj.set != shopName(i) || obj.kept || obj.annotatedWith(apply.Keep) || obj.annotation == bogus {
			continue
		}
		if obj.controller == "" || obj.controller == m.controller(i) {
			delete(m.objects, slot)
		}
	}
	return false
}

// bogus is a word that is no policy.
const bogus = "bogus"

func (o *modelObject) annotatedWith(p apply.Policy) bool {
	return slices.Contains(strings.Split(o.annotation, ","), string(p))
}

func (m *model) controller(i int) string {
	return fmt.Sprintf("%s %d", shopName(i), m.shops[i].incarnation)
}

// ensure makes an object as it should be. It reports whether it could.
func (m *model) ensure(i int, slot string, w wish) bool {
	controller := m.controller(i)
	if slots[slot].tracked || w.has(apply.Keep) || w.has(apply.Unowned) {
		controller = ""
	}
	wanted := fmt.Sprint(w.data, controller, w.has(apply.Keep), w.wave)
	obj := m.objects[slot]
	if obj == nil {
		obj = &modelObject{data: map[string]*modelField{}}
		m.objects[slot] = obj
	} else {
		ours := obj.set == shopName(i)
		switch has := func(p apply.Policy) bool { return w.has(p) || obj.annotatedWith(p) }; {
		case obj.annotation == bogus:
			return false
		case !ours && (obj.set != "" || !has(apply.Adopt)):
			return false
		case ours && has(apply.CreateOnly):
			return true
		case obj.applied == wanted && (w.has(apply.Theirs) || obj.isIntact(w)):
			return true
		case w.has(apply.StopOnConflict) && obj.conflicts(w):
			return false
		case !ours && has(apply.CreateOnly):
			w.data = nil // it becomes ours as it is
		}
	}
	obj.set, obj.controller, obj.kept, obj.applied = shopName(i), controller, w.has(apply.Keep), wanted
	obj.apply(w)
	return true
}

// isIntact reports whether the set manages all that it wants.
func (o *modelObject) isIntact(w wish) bool {
	for key := range w.data {
		if f := o.data[key]; f == nil || !f.ours {
			return false
		}
	}
	return true
}

// conflicts reports whether another client has set a field of the set to another value.
func (o *modelObject) conflicts(w wish) bool {
	for key, value := range w.data {
		if f := o.data[key]; f != nil && f.rest && f.value != value {
			return true
		}
	}
	return false
}

func (o *modelObject) apply(w wish) {
	for key, f := range o.data {
		if _, wanted := w.data[key]; wanted {
			continue
		}
		if f.ours && !f.rest {
			delete(o.data, key)
		}
		f.ours = false
	}
	for key, value := range w.data {
		switch f := o.data[key]; {
		case f == nil || f.value != value && (!f.rest || !w.has(apply.Theirs)):
			o.data[key] = &modelField{value: value, ours: true}
		case f.value == value:
			f.ours = true
		default:
			f.ours = false
		}
	}
}

// edit sets a field as another client does, or removes it if the value is empty.
func (o *modelObject) edit(key, value string) {
	switch f := o.data[key]; {
	case value == "":
		delete(o.data, key)
	case f == nil || f.value != value:
		o.data[key] = &modelField{value: value, rest: true}
	}
}

// recreate deletes a Shop and creates it again.
func (m *model) recreate(i int) {
	for slot, obj := range m.objects {
		switch {
		case obj.controller == m.controller(i):
			delete(m.objects, slot) // by the garbage collector
		case obj.set == shopName(i) && obj.controller == "" && !obj.kept && !obj.annotatedWith(apply.Keep) && obj.annotation != bogus:
			delete(m.objects, slot) // by the operator
		}
	}
	m.shops[i].incarnation++
}

// String returns what exists: a line for each slot.
func (m *model) String() string {
	var lines []string
	for slot, obj := range m.objects {
		data := map[string]string{}
		for key, f := range obj.data {
			data[key] = f.value
		}
		lines = append(lines, describe(slot, obj.set, obj.controller, obj.annotation, data))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

func describe(slot, set, controller, annotation string, data map[string]string) string {
	return fmt.Sprintf("%s of [%s] by [%s] with [%s]: %s", slot, set, controller, annotation, dataText(data))
}
