// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"fmt"
	"strings"
	"time"

	"github.com/mattn/go-runewidth"
)

// View draws a World for a terminal of a given size, at a given time.
type View struct {
	Width, Height int // in cells; one line of the height remains free
	Now           time.Time
	Colors        bool
	Title         string
	Hint          string // shown while there are no objects
}

// maxEventLines is how many events the view shows at most.
const maxEventLines = 5

// Lines returns the picture, every line at most Width cells wide.
func (v View) Lines(w *World) []string {
	lines := []string{line(v.Colors, v.Width, span{v.Title, bold}), ""}
	events := w.Events(maxEventLines)
	room := v.Height - 1 - len(lines)
	if spare := room/2 - 2; len(events) > spare {
		events = events[len(events)-max(spare, 0):]
	}
	if len(events) > 0 {
		room -= len(events) + 2
	}

	tree := w.Tree()
	if len(tree) == 0 && v.Hint != "" {
		lines = append(lines, line(v.Colors, v.Width, span{v.Hint, dim}))
	}
	lines = append(lines, v.table(fold(tree, max(room, 1)))...)
	if len(events) > 0 {
		lines = append(lines, "", line(v.Colors, v.Width, span{"Events", dim}))
		lines = append(lines, v.events(events)...)
	}
	return lines[:min(len(lines), max(v.Height-1, 1))]
}

// row is a line of the tree: branches and an object, or a remark about what is not shown.
type row struct {
	branches string
	parent   *Object
	object   *Object
	remark   string
}

// fold returns at most room rows of the tree. If there are more, it first omits the children of
// finished objects, and then the older ones of many siblings.
func fold(tree []*Node, room int) []row {
	const everything = int(^uint(0) >> 1)
	rows := rowsOf(tree, everything, true)
	if len(rows) <= room {
		return rows
	}
	for _, siblings := range []int{everything, 16, 8, 6, 4, 3, 2, 1, 0} {
		if rows = rowsOf(tree, siblings, false); len(rows) <= room {
			return rows
		}
	}
	hidden := len(rows) - (room - 1)
	return append(rows[:room-1], row{remark: fmt.Sprintf("… and %d more lines", hidden)})
}

// rowsOf returns the rows of the tree, with at most that many children of each object. ofDone says
// whether it includes the children of finished objects.
func rowsOf(tree []*Node, siblings int, ofDone bool) []row {
	var rows []row
	var descend func(node *Node, branches string)
	descend = func(node *Node, branches string) {
		children := node.Children
		if !ofDone && node.Object.State.done() {
			return
		}
		if hidden := len(children) - siblings; hidden > 0 {
			children = children[hidden:]
			corner := "├─ "
			if len(children) == 0 {
				corner = "└─ "
			}
			rows = append(rows, row{branches: branches + corner, remark: fmt.Sprintf("… %d earlier", hidden)})
		}
		for i, child := range children {
			corner, below := "├─ ", "│  "
			if i == len(children)-1 {
				corner, below = "└─ ", "   "
			}
			rows = append(rows, row{branches: branches + corner, parent: node.Object, object: child.Object})
			descend(child, branches+below)
		}
	}
	for _, node := range tree {
		rows = append(rows, row{object: node.Object})
		descend(node, "")
	}
	return rows
}

// done reports whether the state is final.
func (s State) done() bool {
	return s.Word == "Complete" || s.Word == "Completed" || s.Word == "Failed"
}

const ageWidth = 4

// table formats rows in columns: the branches and the object, its age, its state.
func (v View) table(rows []row) []string {
	nameWidth := 0
	for _, r := range rows {
		if r.object != nil {
			nameWidth = max(nameWidth, runewidth.StringWidth(r.branches+r.kind()+r.name()))
		}
	}
	nameWidth = min(nameWidth, max(v.Width*11/20, 16))

	lines := make([]string, len(rows))
	for i, r := range rows {
		if r.object == nil {
			lines[i] = line(v.Colors, v.Width, span{r.branches + r.remark, dim})
			continue
		}
		name := shorten(r.name(), max(nameWidth-runewidth.StringWidth(r.branches+r.kind()), 1))
		filler := nameWidth - runewidth.StringWidth(r.branches+r.kind()+name)
		word, details := v.state(r.object.State)
		lines[i] = line(v.Colors, v.Width,
			span{r.branches, dim}, span{r.kind(), cyan}, span{name, r.nameColor()}, span{strings.Repeat(" ", max(filler, 0)), plainText},
			span{fmt.Sprintf("  %*s  ", ageWidth, age(v.Now.Sub(r.object.Created))), dim},
			span{word, r.object.State.Level.color()}, span{details, plainText})
	}
	return lines
}

func (r row) kind() string { return r.object.Kind.Kind + " " }

// name returns the name of the object, without the namespace if it is the parent's.
func (r row) name() string {
	if r.parent != nil && r.parent.Namespace == r.object.Namespace {
		return r.object.Name
	}
	return r.object.FullName()
}

func (r row) nameColor() color {
	if r.branches == "" {
		return bold
	}
	return plainText
}

// state returns the word of a state and the text that follows it.
func (v View) state(s State) (word, details string) {
	text := s.text(func(at time.Time) string {
		if since := v.Now.Sub(at); since < 0 {
			return "in " + age(-since)
		} else {
			return age(since) + " ago"
		}
	})
	return s.Word, strings.TrimPrefix(text, s.Word)
}

// events formats events in columns: the age, the object, the reason and, as far as there is room,
// the message.
func (v View) events(events []*Event) []string {
	nameWidth, reasonWidth := 0, 0
	names := make([]string, len(events))
	for i, event := range events {
		names[i] = shorten(event.Name, max(v.Width/3-runewidth.StringWidth(event.Kind), 8))
		nameWidth = max(nameWidth, runewidth.StringWidth(event.Kind+" "+names[i]))
		reasonWidth = max(reasonWidth, runewidth.StringWidth(event.reason()))
	}
	lines := make([]string, len(events))
	for i, event := range events {
		reason := span{padRight(event.reason(), reasonWidth+2), plainText}
		if event.Warning {
			reason.color = yellow
		}
		lines[i] = line(v.Colors, v.Width,
			span{fmt.Sprintf("%*s  ", ageWidth, age(v.Now.Sub(event.Time))), dim},
			span{event.Kind + " ", cyan}, span{padRight(names[i], nameWidth-runewidth.StringWidth(event.Kind)+1), plainText},
			reason, span{event.Message, dim})
	}
	return lines
}

// reason returns the reason and, if there are several, the number of occurrences.
func (e *Event) reason() string {
	if e.Count > 1 {
		return fmt.Sprintf("%s ×%d", e.Reason, e.Count)
	}
	return e.Reason
}

// age formats a duration in at most four cells, similar to kubectl.
func age(d time.Duration) string {
	switch {
	case d < 0:
		return "0s"
	case d < 100*time.Second:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < 100*time.Minute:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", int(d.Hours()))
	default:
		return fmt.Sprintf("%dd", int(d.Hours()/24))
	}
}
