"""Each language: a text, and the names of its definitions as they come."""

# language: a text, and the names of its definitions as they come
SAMPLES: dict[str, tuple[str, str]] = {
    "bash": (
        """\
foo() { :; }
function bar { :; }
""",
        "foo bar",
    ),
    "c": (
        """\
#define MAX(a) a
struct S { int a; };
struct S *use;
enum E { X };
typedef struct { int b; } T;
typedef int (*cb)(void);
static struct S *foo(int a) { return 0; }
int proto(void);
""",
        "MAX S E T cb foo",
    ),
    "clojure": (
        """\
(ns a.b)
(defn foo [x] x)
(def bar 1)
""",
        "a.b foo bar",
    ),
    "cmake": (
        """\
function(foo a)
endfunction()
macro(bar)
endmacro()
""",
        "foo bar",
    ),
    "commonlisp": (
        """\
(defun foo (x) x)
(defclass bar () ())
(defmacro baz () 1)
""",
        "foo bar baz",
    ),
    "cpp": (
        """\
namespace n { class A { void f(); ~A() {} int g() const { return 1; } }; }
void n::A::f() {}
template <class T> T max(T a) { return a; }
enum class E { X };
using Al = int;
bool operator==(A a, A b) { return true; }
class Fwd;
""",
        "A g ~A n n::A::f max E Al operator==",
    ),
    "csharp": (
        """\
namespace N;
class A { public void Foo() {} int P { get; set; } delegate void D();
  public A() {} event E Ev { add {} remove {} } }
interface I { }
record R(int a);
struct S {}
enum En { X }
""",
        "N A D Foo P A Ev I R S En",
    ),
    "css": (
        """\
.a { color: red }
@media x { .b { } }
@keyframes k { }
""",
        ".a .b k",
    ),
    "cuda": (
        """\
__global__ void k() { }
""",
        "k",
    ),
    "dart": (
        """\
class A { A(); void foo() {} int get g => 1; }
mixin M {}
extension Ex on A {}
enum E { x }
void bar() {}
typedef T = int;
""",
        "A A foo g M Ex E bar T",
    ),
    "elisp": (
        """\
(defun foo (x) x)
(defmacro baz () nil)
(defvar v 1)
(defcustom c 1 "doc")
(cl-defun d () 1)
(defconst k 1)
""",
        "foo baz v c d k",
    ),
    "elixir": (
        """\
defmodule M.N do
  def foo(x), do: x
  defp bar, do: 1
  defmacro baz(x) do
 x
 end
  def g(x) when x > 1, do: x
  defstruct [:a]
end
""",
        "M.N foo bar baz g",
    ),
    "erlang": (
        """\
-module(m).
-record(r, {a}).
-type t() :: int().
foo(X) -> X.
""",
        "m r t foo",
    ),
    "fsharp": (
        """\
module M.N
let foo x = x + 1
type A = { x: int }
type B() =
  member this.Bar(y) = y
module Inner =
  let baz z = 3
""",
        "M.N foo A B this.Bar Inner baz",
    ),
    "gdscript": (
        """\
class_name A
func foo():
	pass
class B:
	pass
""",
        "A foo B",
    ),
    "glsl": (
        """\
void main() { }
struct S { float a; };
""",
        "main S",
    ),
    "go": (
        """\
package p
type S struct { a int }
type ( I interface { M() }
 A = int )
func F() {}
func (s *S) Bar() {}
""",
        "S M I A F Bar",
    ),
    "graphql": (
        """\
type A { b: Int }
enum E { X }
query Q { a }
interface I { x: Int }
input N { a: Int }
fragment F on A { b }
""",
        "A E Q I N F",
    ),
    "groovy": (
        """\
class A {
 def foo() { 1 }
}
def run(a) { a }
interface I { }
task clean(type: Delete) { delete x }
""",
        "A foo run I clean",
    ),
    "haskell": (
        """\
module M where
foo :: Int -> Int
foo x = x
data T = A | B
class C a where
  m :: a
newtype N = N Int
type S = Int
instance C Int where
""",
        "foo foo T C m N S C",
    ),
    "hcl": (
        """\
resource "a" "b" {
  c = 1
}
variable "v" {}
locals {
 x = 1
}
""",
        "b v locals",
    ),
    "hlsl": (
        """\
float4 main() { return 1; }
""",
        "main",
    ),
    "java": (
        """\
@Foo
public class A { A() {} void bar() {} enum E { X } interface I { int m(); } }
record R(int a) {}
@interface An {}
""",
        "A A E I bar m R An",
    ),
    "javascript": (
        """\
function foo() { const inner = 1 }
class A { bar() {} #p() {} }
export const baz = () => 1
function* gen() {}
const x = 1, y = 2
export default class {}
""",
        "foo A #p bar baz gen x y",
    ),
    "julia": (
        """\
module M
function foo(x) x end
struct S a::Int end
bar(x) = x
macro m(x) x end
abstract type T end
end
""",
        "M foo S bar m T",
    ),
    "kotlin": (
        """\
class A { companion object {
 fun c() {} }
}
object O
fun bar() = 1
fun String.ext() = 1
typealias T = Int
interface I
""",
        "A c O bar ext T I",
    ),
    "lua": (
        """\
local function foo() end
function M.bar() end
M.baz = function() end
function M:qux() end
""",
        "foo bar baz qux",
    ),
    "objc": (
        """\
@interface A : NSObject
- (void)foo:(int)x;
@end
@implementation A
- (void)foo:(int)x { }
@end
@protocol P
@end
int bar(void) { return 1; }
""",
        "A foo A foo P bar",
    ),
    "ocaml": (
        """\
let foo x = let inner = 1 in x + inner
type t = A | B
module M = struct let y = 1 end
module type S = sig val z : int end
exception E
class c = object method m = 1 end
""",
        "foo t M y S z E c m",
    ),
    "ocaml_interface": (
        """\
val foo : int -> int
type t
module M : sig val y : int end
exception E of string
""",
        "foo t M y E",
    ),
    "perl": (
        """\
package P;
sub foo { 1 }
""",
        "P foo",
    ),
    "php": (
        """\
<?php
namespace N\\M;
class A { function foo() {} }
interface I {}
trait T {}
enum E { case X; }
function bar() {}
""",
        "N\\M A foo I T E bar",
    ),
    "powershell": (
        """\
function Foo { 1 }
class A { [int] Bar() { return 1 } }
enum E { X }
""",
        "Foo Bar A E",
    ),
    "proto": (
        """\
syntax="proto3";
message A { int32 b = 1; }
service S { rpc F(A) returns (A); }
enum E { X = 0; }
""",
        "A F S E",
    ),
    "python": (
        """\
import a
@dec
class A:
    def foo(self): ...
async def bar(): ...
type T = int
""",
        "A foo bar T",
    ),
    "r": (
        """\
foo <- function(x) x
bar = function() 1
""",
        "foo bar",
    ),
    "ruby": (
        """\
module M
 class A
  def foo; end
  def self.bar; end
 end
end
""",
        "M A foo bar",
    ),
    "rust": (
        """\
#[derive(Debug)]
struct S;
impl S { fn new() {} }
impl<T> Tr for Vec<T> {}
enum E { A }
trait Tr { fn f(); }
mod m { }
macro_rules! mm { () => {} }
union U { a: i32 }
type Al = i32;
""",
        "S new S Vec<T> E f Tr m mm U Al",
    ),
    "scala": (
        """\
package p
class A { def foo = 1 }
object O
trait T { def m: Int }
type X = Int
""",
        "A foo O m T X",
    ),
    "scheme": (
        """\
(define (foo x) x)
(define bar 1)
""",
        "foo bar",
    ),
    "scss": (
        """\
.a { .b { } }
@mixin m($x) { }
@function f($x) { @return 1; }
""",
        ".a .b m f",
    ),
    "solidity": (
        """\
contract C { constructor() {} function foo() public {} event E(); modifier m() { _; }
  struct S { uint a; } enum En { X } error Er(); }
interface I {}
library L {}
""",
        "C E foo m En Er S I L",
    ),
    "sql": (
        """\
CREATE TABLE t (a INT);
CREATE VIEW v AS SELECT 1;
CREATE FUNCTION f() RETURNS int AS $$ SELECT 1 $$ LANGUAGE sql;
CREATE INDEX i ON t (a);
CREATE TYPE y AS ENUM ('a');
CREATE TRIGGER g BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION f();
""",
        "t v f i y g",
    ),
    "starlark": (
        """\
def f():
  pass
""",
        "f",
    ),
    "svelte": (
        """\
<script>
  let a = 1
  function b() {}
</script>
<p/>
""",
        "a b",
    ),
    "swift": (
        """\
class B: P { init(a: Int) {}
 deinit {} }
extension A { func g() {} }
protocol Q { func h() }
struct S {}
enum E {}
typealias T = Int
""",
        "B init deinit A g Q h S E T",
    ),
    "tlaplus": (
        """\
---- MODULE M ----
EXTENDS Naturals
Init == x = 0
Next(a) == x' = a
f[y \\in S] == y
THEOREM T == TRUE
====
""",
        "M Init Next f T",
    ),
    "tsx": (
        """\
export function App() { return <div/> }
type P = { a: number }
""",
        "App P",
    ),
    "typescript": (
        """\
interface I { m(): void }
type T = string
enum E { A }
abstract class A { abstract foo(): void; bar() {} }
export const q = 1
namespace N { function inner() {} }
declare function d(): void
declare module 'x' {}
""",
        "I m T E A foo bar q inner N d 'x'",
    ),
    "vim": (
        """\
function! s:Foo(a)
endfunction
""",
        "s:Foo",
    ),
    "vue": (
        """\
<template>
  <div/>
</template>
<script setup lang="ts">
interface P { a: number }
const x = ref(1)
function go() {}
</script>
<style>
</style>
""",
        "P x go",
    ),
    "zig": (
        """\
const S = struct { a: i32,
 fn m(self: S) void {} };
pub fn foo() void { const inner = 1; _ = inner; }
test "x" {}
""",
        'S m foo "x"',
    ),
}
