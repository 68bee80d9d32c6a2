// Package graphviz lays a drawing out with Graphviz and returns it as SVG.
//
// Graphviz runs inside the process, compiled to WebAssembly: nothing has to be installed. It is compiled to machine code
// when the process starts, which takes more than a second the first time and some fifty milliseconds from then on.
// Packages that do not draw SVG should not import this one.
package graphviz
