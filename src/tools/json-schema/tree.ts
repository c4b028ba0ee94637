import { isJsonObject, type Json, type JsonObject } from '../../lib/json.ts';
import {
  ASSERTIONS,
  type SubschemaForm,
  DEFINITIONS,
  FORBIDDEN_KEYWORDS,
  IN_PLACE,
  isAnnotation,
  UNSAFE_NAMES,
  TO_ITEMS,
  TO_MEMBERS,
} from './keywords.ts';
import { SCHEMA_FORMATS } from './formats.ts';
import { patternProblem } from './patterns.ts';

/** The kind of a violation: malformed, dangerous, or an unknown keyword (harmless, but surely a mistake). */
type SchemaProblem = 'invalid' | 'unsafe' | 'unknown-keyword';

export interface SchemaViolation {
  problem: SchemaProblem;
  /** The name of the schema and the JSON pointer of the violation: `inputSchema/properties/age`. */
  path: string;
  message: string;
}

/** A schema or subschema. Its subschemas are grouped by the values that they apply to. */
export interface SchemaNode {
  path: string;
  /** Work of one visit: members, enum values and the like. */
  weight: number;
  reference?: string;
  /** Subschemas that apply to the same value. */
  inPlace: SchemaNode[];
  /** Subschemas by member name; at most one applies to any given member. */
  properties: SchemaNode[];
  /** Other subschemas for members; all of them may apply to the same member. */
  members: SchemaNode[];
  /** Subschemas for the items of a list. */
  items: SchemaNode[];
}

export interface SchemaTree {
  root: SchemaNode;
  byPointer: ReadonlyMap<string, SchemaNode>;
  /** The schema for the validator: only known assertions, without annotations and identifiers. */
  clean: Json;
  violations: SchemaViolation[];
}

const LIMITS = { depth: 32, nodes: 1_000, patterns: 50, violations: 50, nameLength: 256 };

/** Where the schema itself is in the schema for the validator, when it contains references. */
const ROOT_POINTER = '#/$defs/root';

/** Parses an untrusted schema into a tree with bounded recursion, and checks every keyword. */
export function readSchema(schema: Json, what: string): SchemaTree {
  const reader = new SchemaReader(what);
  const { node, clean: root } = reader.read(schema, '', 0);
  // The validator cannot resolve a reference to the whole document, so the document becomes a definition of another one.
  const clean: Json = reader.hasReferences ? { $ref: ROOT_POINTER, $defs: { root } } : root;
  return { root: node, byPointer: reader.byPointer, clean, violations: reader.violations };
}

interface ReadSchema {
  node: SchemaNode;
  clean: Json;
}

/** The schema object whose members are being read. */
interface OpenSchema {
  readonly node: SchemaNode;
  /** Its cleaned form, to which each member is added. */
  readonly clean: JsonObject;
  readonly pointer: string;
  readonly depth: number;
}

/**
 * Walks a schema once and builds three results at the same time:
 *
 *   read(schema)              one schema object -> a node and its cleaned form
 *     #keyword(open, …)       one member of the open schema, by kind:
 *       assertion             -> copied to `clean` if its value is valid (`pattern` and `format` are checked further)
 *       carries subschemas    -> #subschemas: read() for each child, by the form of the keyword: list, one schema, or map
 *       $ref                  -> recorded on the node, resolved later by costOf
 *       root $id, annotation  -> dropped
 *       forbidden, unknown    -> violation
 *
 * `byPointer` maps each JSON pointer to its node, `clean` is the input of the validator, `violations` lists the problems.
 */
class SchemaReader {
  readonly byPointer = new Map<string, SchemaNode>();
  readonly violations: SchemaViolation[] = [];
  hasReferences = false;
  #patterns = 0;
  readonly #what: string;

  constructor(what: string) {
    this.#what = what;
  }

  read(schema: Json, pointer: string, depth: number): ReadSchema {
    const node: SchemaNode = {
      path: this.#what + pointer,
      weight: 1,
      inPlace: [],
      properties: [],
      members: [],
      items: [],
    };
    this.byPointer.set(pointer, node);
    if (typeof schema === 'boolean') return { node, clean: schema };
    if (!isJsonObject(schema)) {
      this.#report('invalid', pointer, 'a schema must be an object, true or false');
      return { node, clean: true };
    }
    if (depth >= LIMITS.depth) {
      this.#report('unsafe', pointer, `schemas may be nested at most ${LIMITS.depth} levels deep; flatten this one`);
      return { node, clean: true };
    }
    if (this.byPointer.size > LIMITS.nodes) {
      this.#report('unsafe', pointer, `at most ${LIMITS.nodes} subschemas are allowed; use fewer`);
      return { node, clean: true };
    }
    const clean: JsonObject = {};
    const open: OpenSchema = { node, clean, pointer, depth };
    for (const [keyword, value] of Object.entries(schema)) this.#keyword(open, keyword, value);
    if (clean['nullable'] !== undefined && clean['type'] === undefined) delete clean['nullable'];
    return { node, clean };
  }

  #keyword(open: OpenSchema, keyword: string, value: Json): void {
    const { pointer } = open;
    const assertion = ASSERTIONS.get(keyword);
    const form = subschemaFormOf(keyword);
    if (assertion !== undefined) {
      if (assertion.holds(value)) this.#assertion(open, keyword, value);
      else this.#report('invalid', pointer, `${keyword} must ${assertion.must}`);
    } else if (form !== undefined) {
      this.#subschemas(open, keyword, form, value);
    } else if (keyword === '$ref') {
      this.#reference(open, value);
    } else if (keyword === '$id' && pointer === '') {
      // No other document may refer to this schema, so its identifier is not needed.
    } else if (FORBIDDEN_KEYWORDS.has(keyword) || keyword === '$id') {
      this.#report('unsafe', pointer, `${keyword} is not allowed; use $ref to #/$defs/NAME`);
    } else if (!isAnnotation(keyword)) {
      this.#report('unknown-keyword', pointer, `${shown(keyword)} is not a keyword of JSON Schema; remove it`);
    }
  }

  #assertion({ node, clean, pointer }: OpenSchema, keyword: string, value: Json): void {
    if (keyword === 'format') {
      if (typeof value === 'string' && SCHEMA_FORMATS.has(value)) clean[keyword] = value;
      return;
    }
    if (keyword === 'pattern' && typeof value === 'string' && !this.#pattern(value, pointer)) return;
    if (keyword === 'uniqueItems') node.weight += 10;
    node.weight += weightOf(value);
    clean[keyword] = value;
  }

  #pattern(pattern: string, pointer: string): boolean {
    this.#patterns += 1;
    if (this.#patterns > LIMITS.patterns) {
      this.#report('unsafe', pointer, `at most ${LIMITS.patterns} patterns are allowed; use fewer`);
      return false;
    }
    const problem = patternProblem(pattern);
    if (problem === undefined) return true;
    this.#report(problem.problem, pointer, problem.message);
    return false;
  }

  #reference({ node, clean, pointer }: OpenSchema, value: Json): void {
    if (typeof value !== 'string') this.#report('invalid', pointer, '$ref must be text');
    else if (!value.startsWith('#')) {
      this.#report('unsafe', pointer, `$ref ${shown(value)} leads outside the schema; refer to #/$defs/NAME`);
    } else {
      node.reference = value;
      this.hasReferences = true;
      clean['$ref'] = ROOT_POINTER + value.slice(1);
    }
  }

  #subschemas(open: OpenSchema, keyword: string, form: SubschemaForm, value: Json): void {
    const { clean } = open;
    if (form === 'list' || (form === 'schema-or-list' && Array.isArray(value))) {
      // Draft-07 wrote tuples as a list under `items`.
      const read = this.#list(open, keyword, value);
      if (read !== undefined) clean[keyword === 'items' ? 'prefixItems' : keyword] = read;
    } else if (form === 'schema' || form === 'schema-or-list') {
      clean[keyword === 'additionalItems' ? 'items' : keyword] = this.#child(open, keyword, value, '');
    } else {
      clean[keyword] = this.#map(open, keyword, form, value);
    }
  }

  #list(open: OpenSchema, keyword: string, value: Json): Json[] | undefined {
    if (Array.isArray(value) && value.length > 0) {
      return value.map((child, index) => this.#child(open, keyword, child, `/${index}`));
    }
    this.#report('invalid', open.pointer, `${keyword} must be a non-empty list of schemas`);
    return undefined;
  }

  #map(open: OpenSchema, keyword: string, form: SubschemaForm, value: Json): Json {
    const { node, pointer } = open;
    const clean: JsonObject = {};
    if (!isJsonObject(value)) {
      this.#report('invalid', pointer, `${keyword} must be an object`);
      return clean;
    }
    for (const [name, child] of Object.entries(value)) {
      if (!this.#isAllowedName(pointer, keyword, name)) continue;
      node.weight += 1;
      clean[name] =
        form === 'schemas-or-names' && Array.isArray(child)
          ? child.filter((item) => typeof item === 'string')
          : this.#child(open, keyword, child, `/${escapePointer(name)}`);
    }
    return clean;
  }

  #isAllowedName(pointer: string, keyword: string, name: string): boolean {
    if (UNSAFE_NAMES.has(name) || name.length > LIMITS.nameLength) {
      this.#report('unsafe', pointer, `${keyword} may not contain the name ${shown(name)}; choose another`);
      return false;
    }
    if (keyword !== 'patternProperties') return true;
    return this.#pattern(name, `${pointer}/${escapePointer(keyword)}/${escapePointer(name)}`);
  }

  /** Reads the subschema at `pointer/keyword` + `suffix`, adds it to the node and returns its cleaned form. */
  #child({ node, pointer, depth }: OpenSchema, keyword: string, schema: Json, suffix: string): Json {
    const read = this.read(schema, `${pointer}/${escapePointer(keyword)}${suffix}`, depth + 1);
    groupFor(node, keyword)?.push(read.node);
    return read.clean;
  }

  #report(problem: SchemaProblem, pointer: string, message: string): void {
    if (this.violations.length < LIMITS.violations) {
      this.violations.push({ problem, path: shownPath(this.#what + pointer), message });
    }
  }
}

/** The subschemas of the node that apply to the same values as those of the keyword; undefined for definitions. */
function groupFor(node: SchemaNode, keyword: string): SchemaNode[] | undefined {
  if (keyword === 'properties') return node.properties;
  if (TO_MEMBERS.has(keyword)) return node.members;
  if (TO_ITEMS.has(keyword)) return node.items;
  return IN_PLACE.has(keyword) ? node.inPlace : undefined;
}

function subschemaFormOf(keyword: string): SubschemaForm | undefined {
  return IN_PLACE.get(keyword) ?? TO_MEMBERS.get(keyword) ?? TO_ITEMS.get(keyword) ?? DEFINITIONS.get(keyword);
}

/** The number of values in `enum`, `const` and name lists, each of which a visit compares. */
function weightOf(value: Json): number {
  if (typeof value !== 'object' || value === null) return 1;
  let weight = 1;
  const stack: Json[] = [value];
  for (let item = stack.pop(); item !== undefined; item = stack.pop()) {
    weight += 1;
    if (typeof item === 'object' && item !== null) stack.push(...(Array.isArray(item) ? item : Object.values(item)));
  }
  return weight;
}

function escapePointer(token: string): string {
  return token.replaceAll('~', '~0').replaceAll('/', '~1');
}

function shown(text: string): string {
  return JSON.stringify(text.length > 60 ? `${text.slice(0, 60)}…` : text);
}

function shownPath(path: string): string {
  return path.length > 200 ? `${path.slice(0, 200)}…` : path;
}
