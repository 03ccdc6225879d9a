"""What counts as a reference, per grammar of tree-sitter-language-pack 0.13.

Each entry is a tree-sitter query: `@u` captures a name that is called or used as a
type, `@b` one that a class or type extends or implements. Names of variables, and names
in comments and strings, do not count. Other languages have no references.
"""

_CALLS = """
(call_expression function: [
  (identifier) @u (member_expression property: (property_identifier) @u)])
(new_expression constructor: (identifier) @u)
"""

_JSX = """
(jsx_opening_element name: (identifier) @u)
(jsx_self_closing_element name: (identifier) @u)
"""

_TYPESCRIPT = f"""
{_CALLS}
(type_identifier) @u
(extends_clause value: (identifier) @b)
(implements_clause [
  (type_identifier) @b (generic_type name: (type_identifier) @b)])
(extends_type_clause [
  (type_identifier) @b (generic_type name: (type_identifier) @b)])
"""

_C = """
(call_expression function: [
  (identifier) @u (field_expression field: (field_identifier) @u)])
(type_identifier) @u
"""

_CPP = f"""
{_C}
(call_expression function: (qualified_identifier name: (identifier) @u))
(base_class_clause (type_identifier) @b)
(base_class_clause (qualified_identifier name: (type_identifier) @b))
(base_class_clause (template_type name: (type_identifier) @b))
"""

REFERENCES = {
    "c": _C,
    "cpp": _CPP,
    "csharp": """
(invocation_expression function: [
  (identifier) @u (member_access_expression name: (identifier) @u)])
(object_creation_expression type: (identifier) @u)
(variable_declaration type: (identifier) @u)
(parameter type: (identifier) @u)
(method_declaration returns: (identifier) @u)
(property_declaration type: (identifier) @u)
(type_argument_list (identifier) @u)
(nullable_type (identifier) @u)
(array_type (identifier) @u)
(generic_name . (identifier) @u)
(cast_expression type: (identifier) @u)
(member_access_expression expression: (identifier) @u)
(base_list [(identifier) @b (generic_name (identifier) @b)])
""",
    "cuda": _CPP,
    "dart": """
((identifier) @u . (selector (argument_part)))
((selector (_ (identifier) @u)) . (selector (argument_part)))
(type_identifier) @u
(superclass (type_identifier) @b)
(interfaces (type_identifier) @b)
(mixins (type_identifier) @b)
""",
    "go": """
(call_expression function: [
  (identifier) @u (selector_expression field: (field_identifier) @u)])
(type_identifier) @u
(field_declaration !name type: [
  (type_identifier) @b (pointer_type (type_identifier) @b)])
(type_elem (type_identifier) @b)
""",
    "java": """
(method_invocation name: (identifier) @u)
(method_invocation object: (identifier) @u)
(type_identifier) @u
(superclass [(type_identifier) @b (generic_type (type_identifier) @b)])
(type_list [(type_identifier) @b (generic_type (type_identifier) @b)])
(superclass (scoped_type_identifier (type_identifier) @b))
(type_list (scoped_type_identifier (type_identifier) @b))
""",
    "javascript": f"{_CALLS}{_JSX}(class_heritage (identifier) @b)",
    "kotlin": """
(call_expression [
  (simple_identifier) @u
  (navigation_expression (navigation_suffix (simple_identifier) @u))])
(type_identifier) @u
(delegation_specifier [
  (user_type (type_identifier) @b)
  (constructor_invocation (user_type (type_identifier) @b))])
""",
    "lua": """
(function_call name: [
  (identifier) @u
  (dot_index_expression field: (identifier) @u)
  (method_index_expression method: (identifier) @u)])
""",
    "php": """
(function_call_expression function: (name) @u)
(member_call_expression name: (name) @u)
(scoped_call_expression scope: (name) @u)
(scoped_call_expression name: (name) @u)
(object_creation_expression (name) @u)
(named_type (name) @u)
(base_clause (name) @b)
(class_interface_clause (name) @b)
(use_declaration (name) @b)
""",
    "python": """
(call function: [(identifier) @u (attribute attribute: (identifier) @u)])
(decorator [(identifier) @u (attribute attribute: (identifier) @u)])
(type (identifier) @u)
(type (attribute attribute: (identifier) @u))
(type (subscript (identifier) @u))
(type (binary_operator (identifier) @u))
(except_clause (identifier) @u)
(import_from_statement name: (dotted_name (identifier) @u))
(class_definition superclasses: (argument_list [
  (identifier) @b (attribute attribute: (identifier) @b)
  (subscript value: (identifier) @b)]))
""",
    "ruby": """
(call method: [(identifier) @u (constant) @u])
(call receiver: (constant) @u)
(superclass [(constant) @b (scope_resolution name: (constant) @b)])
(call method: (identifier) @m arguments: (argument_list (constant) @b)
  (#any-of? @m "include" "extend" "prepend"))
""",
    "rust": """
(call_expression function: [
  (identifier) @u
  (scoped_identifier name: (identifier) @u)
  (field_expression field: (field_identifier) @u)])
(macro_invocation macro: (identifier) @u)
(scoped_identifier path: (identifier) @u)
(type_identifier) @u
(impl_item trait: [
  (type_identifier) @b
  (scoped_type_identifier name: (type_identifier) @b)
  (generic_type type: (type_identifier) @b)])
""",
    "scala": """
(call_expression function: [
  (identifier) @u (field_expression field: (identifier) @u)])
(type_identifier) @u
(extends_clause [(type_identifier) @b (generic_type . (type_identifier) @b)])
""",
    "swift": """
(call_expression [
  (simple_identifier) @u
  (navigation_expression suffix: (navigation_suffix suffix: (simple_identifier) @u))])
(type_identifier) @u
(inheritance_specifier inherits_from: (user_type (type_identifier) @b))
""",
    "tsx": _TYPESCRIPT + _JSX,
    "typescript": _TYPESCRIPT,
}
