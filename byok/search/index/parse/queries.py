"""What counts as a definition, per grammar of tree-sitter-language-pack 0.13.

Each entry is a tree-sitter query: `@d` captures the definition, `@name` its name, or a
declarator that contains the name. Languages without an entry are not parsed at all.
"""


def _named_query(kinds: str) -> str:
    """Return the query for kinds of nodes that have a field `name`."""
    return "".join(f"({kind} name: (_) @name) @d\n" for kind in kinds.split())


_ECMASCRIPT = f"""
{_named_query("function_declaration generator_function_declaration")}
{_named_query("class_declaration method_definition")}
(program [
  (lexical_declaration (variable_declarator name: (identifier) @name))
  (variable_declaration (variable_declarator name: (identifier) @name))] @d)
(program (export_statement [
  (lexical_declaration (variable_declarator name: (identifier) @name))
  (variable_declaration (variable_declarator name: (identifier) @name))] @d))
"""

_TYPESCRIPT = f"""
{_ECMASCRIPT}
{_named_query("abstract_class_declaration abstract_method_signature method_signature")}
{_named_query("function_signature interface_declaration enum_declaration")}
{_named_query("type_alias_declaration internal_module module")}
(construct_signature) @d
"""

# `struct foo *x` only uses a structure: a definition has a body.
_C = """
(function_definition declarator: (_) @name) @d
(preproc_function_def name: (_) @name) @d
(type_definition declarator: (_) @name) @d
(struct_specifier name: (_)? @name body: (_)) @d
(union_specifier name: (_)? @name body: (_)) @d
(enum_specifier name: (_)? @name body: (_)) @d
"""

_CPP = f"""
{_C}
{_named_query("namespace_alias_definition alias_declaration concept_definition")}
(class_specifier name: (_)? @name body: (_)) @d
(namespace_definition name: (_)? @name) @d
"""

_OCAML = """
(value_specification (value_name) @name) @d
(external (value_name) @name) @d
(type_definition (type_binding name: (_) @name)) @d
(exception_definition (constructor_declaration (constructor_name) @name)) @d
(module_definition (module_binding (module_name) @name)) @d
(module_type_definition (module_type_name) @name) @d
(class_definition (class_binding (class_name) @name)) @d
(method_definition (method_name) @name) @d
"""

_CSS = """
(rule_set (selectors) @name) @d
(keyframes_statement (keyframes_name) @name) @d
"""

QUERIES = {
    "bash": _named_query("function_definition"),
    "c": _C,
    "clojure": """
((source (list_lit . (sym_lit) @keyword . (sym_lit name: (sym_name) @name)) @d)
 (#match? @keyword "^(def|ns)"))
""",
    "cmake": """
(function_def (function_command (argument_list . (argument) @name))) @d
(macro_def (macro_command (argument_list . (argument) @name))) @d
""",
    "commonlisp": """
(defun (defun_header function_name: (_) @name)) @d
((source (list_lit . (sym_lit) @keyword . (sym_lit) @name) @d)
 (#match? @keyword "^(def|DEF)"))
""",
    "cpp": _CPP,
    "csharp": _named_query(
        "class_declaration struct_declaration interface_declaration enum_declaration "
        "record_declaration delegate_declaration method_declaration "
        "constructor_declaration destructor_declaration local_function_statement "
        "property_declaration event_declaration namespace_declaration "
        "file_scoped_namespace_declaration"
    ),
    "css": _CSS,
    "cuda": _CPP,
    "dart": _named_query(
        "class_definition enum_declaration function_signature getter_signature "
        "setter_signature constructor_signature"
    )
    + """
(mixin_declaration (identifier) @name) @d
(extension_declaration name: (_)? @name) @d
(type_alias . (type_identifier) @name) @d
""",
    "elisp": _named_query("function_definition macro_definition")
    + """
((source_file (list . (symbol) @keyword . [
  (symbol) @name (list . (symbol) @name)]) @d)
 (#match? @keyword "^(cl-def|def|define-)"))
(special_form . ["defvar" "defconst"] . (symbol) @name) @d
""",
    "elixir": """
((call target: (identifier) @keyword
  (arguments . [
    (alias) @name
    (identifier) @name
    (call target: (identifier) @name)
    (binary_operator left: [
      (identifier) @name (call target: (identifier) @name)])])) @d
 (#any-of? @keyword "def" "defp" "defmacro" "defmacrop" "defguard" "defguardp"
  "defdelegate" "defmodule" "defprotocol" "defimpl"))
((call target: (identifier) @keyword) @d
 (#any-of? @keyword "defstruct" "defexception"))
""",
    "erlang": _named_query("module_attribute record_decl")
    + """
(fun_decl clause: (function_clause name: (_) @name)) @d
(type_alias name: (type_name name: (_) @name)) @d
""",
    "fsharp": """
(function_or_value_defn (function_declaration_left . (_) @name)) @d
(type_definition (_ (type_name type_name: (_) @name))) @d
(member_defn (method_or_prop_defn name: (property_or_ident) @name)) @d
(module_defn (identifier) @name) @d
(namespace name: (_) @name) @d
(named_module name: (_) @name) @d
""",
    "gdscript": _named_query(
        "class_name_statement class_definition function_definition enum_definition"
    ),
    "glsl": _C,
    "go": _named_query(
        "function_declaration method_declaration method_elem type_spec type_alias"
    )
    + """
(type_declaration) @d
""",
    "graphql": """
(type_definition (_ (name) @name)) @d
(operation_definition (name) @name) @d
(fragment_definition (fragment_name) @name) @d
""",
    # This grammar knows commands, no classes: what stands before a `{` or `(`.
    "groovy": """
((command (unit (identifier) @keyword) (block . (unit [
  (identifier) @name (func . (identifier) @name)]))) @d
 (#any-of? @keyword "class" "interface" "trait" "enum" "def" "void" "task"))
""",
    "haskell": _named_query(
        "signature function bind data_type newtype type_synomym class instance"
    ),
    "hcl": """
(block . (identifier) @name . (block_start)) @d
(block . (identifier) . (string_lit (template_literal) @name) . (block_start)) @d
(block . (identifier) . (string_lit) . (string_lit (template_literal) @name)) @d
""",
    "hlsl": _CPP,
    "java": _named_query(
        "class_declaration interface_declaration annotation_type_declaration "
        "enum_declaration record_declaration method_declaration "
        "constructor_declaration compact_constructor_declaration module_declaration"
    ),
    "javascript": _ECMASCRIPT,
    "julia": _named_query("module_definition")
    + """
(function_definition (signature (call_expression . (_) @name))) @d
(assignment . (call_expression . (identifier) @name)) @d
(macro_definition (signature (call_expression . (_) @name))) @d
(struct_definition (type_head (_) @name)) @d
(abstract_definition (type_head (_) @name)) @d
""",
    "kotlin": """
(class_declaration (type_identifier) @name) @d
(object_declaration (type_identifier) @name) @d
(companion_object) @d
(function_declaration (simple_identifier) @name) @d
(type_alias . (type_identifier) @name) @d
(secondary_constructor) @d
""",
    "lua": """
(function_declaration name: [
  (identifier) @name
  (dot_index_expression field: (_) @name)
  (method_index_expression method: (_) @name)]) @d
(assignment_statement
  (variable_list name: [
    (identifier) @name (dot_index_expression field: (_) @name)])
  (expression_list value: (function_definition))) @d
""",
    "objc": f"""
{_C}
(class_interface . (identifier) @name) @d
(class_implementation . (identifier) @name) @d
(protocol_declaration (identifier) @name) @d
(method_declaration (identifier) @name) @d
(method_definition (identifier) @name) @d
""",
    "ocaml": f"""
{_OCAML}
(compilation_unit (value_definition (let_binding pattern: (value_name) @name)) @d)
(structure (value_definition (let_binding pattern: (value_name) @name)) @d)
""",
    "ocaml_interface": _OCAML,
    "perl": _named_query(
        "subroutine_declaration_statement method_declaration_statement "
        "package_statement class_statement"
    ),
    "php": _named_query(
        "class_declaration interface_declaration trait_declaration enum_declaration "
        "function_definition method_declaration"
    )
    + """
(namespace_definition name: (_)? @name) @d
""",
    "powershell": """
(function_statement (function_name) @name) @d
(class_statement . (simple_name) @name) @d
(class_method_definition (simple_name) @name) @d
(enum_statement . (simple_name) @name) @d
""",
    "proto": """
(message (message_name) @name) @d
(enum (enum_name) @name) @d
(service (service_name) @name) @d
(rpc . (rpc_name) @name) @d
""",
    "python": _named_query("class_definition function_definition")
    + """
(type_alias_statement left: (_) @name) @d
(decorated_definition) @d
""",
    "r": "(binary_operator lhs: (identifier) @name rhs: (function_definition)) @d",
    "ruby": _named_query("method singleton_method class module")
    + "(singleton_class) @d",
    "rust": _named_query(
        "function_item function_signature_item struct_item enum_item union_item "
        "trait_item type_item mod_item macro_definition"
    )
    + """
(impl_item type: (_) @name) @d
(foreign_mod_item) @d
""",
    "scala": _named_query(
        "class_definition object_definition trait_definition enum_definition "
        "type_definition function_definition function_declaration"
    )
    + """
(given_definition name: (_)? @name) @d
(extension_definition) @d
""",
    "scheme": """
((program (list . (symbol) @keyword . [
  (symbol) @name (list . (symbol) @name)]) @d)
 (#match? @keyword "^def"))
""",
    "scss": _CSS + _named_query("mixin_statement function_statement"),
    "solidity": _named_query(
        "contract_declaration library_declaration interface_declaration "
        "struct_declaration enum_declaration function_definition modifier_definition "
        "event_definition error_declaration"
    )
    + "(constructor_definition) @d",
    "sql": """
[(create_table (object_reference name: (_) @name))
 (create_view (object_reference name: (_) @name))
 (create_materialized_view (object_reference name: (_) @name))
 (create_function (object_reference name: (_) @name))
 (create_trigger (keyword_trigger) . (object_reference name: (_) @name))
 (create_type (object_reference name: (_) @name))
 (create_index column: (_) @name)] @d
""",
    "starlark": _named_query("function_definition"),
    "swift": _named_query("protocol_declaration")
    + """
(class_declaration name: [
  (type_identifier) @name (user_type (type_identifier) @name)]) @d
(function_declaration name: (simple_identifier) @name) @d
(protocol_function_declaration name: (simple_identifier) @name) @d
(typealias_declaration name: (type_identifier) @name) @d
(init_declaration "init" @name) @d
(deinit_declaration "deinit" @name) @d
(macro_declaration (simple_identifier) @name) @d
""",
    "tlaplus": _named_query("module operator_definition function_definition theorem"),
    "tsx": _TYPESCRIPT,
    "typescript": _TYPESCRIPT,
    "vim": "(function_definition (function_declaration name: (_) @name)) @d",
    "zig": """
(Decl (FnProto function: (IDENTIFIER) @name)) @d
(Decl (VarDecl variable_type_function: (IDENTIFIER) @name)) @d
(TestDecl (STRINGLITERALSINGLE)? @name) @d
""",
}
