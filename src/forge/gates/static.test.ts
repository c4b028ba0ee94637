import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { TOOL_APIS } from '../../api/v1alpha1/actions.ts';
import { checkSource } from './static.ts';

const wrap = (body: string): string => `function execute(input) {\n${body}\n}`;

/** Harmless code. Much of it contains words or forms that a plain text search would report. */
const ACCEPTED: Record<string, string> = {
  'a member named process': wrap('return { pid: input.process.name, p: input.process };'),
  'words in a text': wrap('return { note: "eval the import of require(process) and new Function()" };'),
  'words in a comment': wrap('// import fs; require("child_process"); eval(1)\nreturn {}; /* process.exit() */'),
  'words in a template': wrap('return { a: `import ${input.a} from process.env` };'),
  'a local named fetch': wrap('const fetch = (x) => x + 1; return { a: fetch(input.a) };'),
  'a parameter named process':
    'const f = (process) => process.step;\nfunction execute(input) { return { a: f(input) }; }',
  'a local function named require': wrap('function require(x) { return x; } return { a: require(1) };'),
  'a destructured member named crypto': wrap('const { crypto, fs } = input; return { crypto, fs: fs.unlink };'),
  'a class with a constructor': wrap('class P { constructor(x) { this.x = x; } } return { x: new P(1).x };'),
  'a derived class':
    'class A { constructor() { this.a = 1; } }\nclass B extends A { constructor() { super(); } }\nfunction execute() { return new B(); }',
  'a method of a prototype':
    'function P(x) { this.x = x; }\nP.prototype.get = function () { return this.x; };\nfunction execute(i) { return { x: new P(i.x).get() }; }',
  'borrowing from a prototype': wrap('return { a: Array.prototype.slice.call(input.a, 1) };'),
  'comparing constructors': wrap('return { a: input.a.constructor === Array, n: input.constructor.name };'),
  'an object without prototype': wrap('const m = { __proto__: null }; m[input.k] = 1; return { m: Object.keys(m) };'),
  'a computed member': wrap('return { v: input.rows[0][input.key] };'),
  'a label named eval_': wrap('outer: for (const a of input.a) { for (;;) { continue outer; } } return {};'),
  'hoisted names': wrap('x = 1; var x; return { x, y: later() }; function later() { return 2; }'),
  'a function in a block, used outside': wrap('if (input.a) { function f() { return 1; } } return { f: typeof f };'),
  'asking whether a name exists': wrap('return { node: typeof process !== "undefined", r: typeof require };'),
  'an arrow bound by const': 'const execute = (input) => ({ a: input.a });',
  'an async entry': 'async function execute(input) { return { a: await Promise.resolve(input.a) }; }',
  'an entry named run': 'function run(input) { return {}; }',
  'an assigned entry': 'execute = function (input) { return {}; };',
  'an entry set on globalThis': 'globalThis.execute = (input) => ({});',
  'sloppy assignment': wrap('total = 0; for (i = 0; i < 3; i++) total += i; return { total };'),
  'arguments and callee-free recursion': wrap(
    'const f = function g(n) { return n ? g(n - 1) : arguments.length; }; return { f: f(3) };',
  ),
  'members named like globals': wrap(
    'return { window: input.window, self: input.self.global, module: { exports: 1 } };',
  ),
  'a long sum': wrap(`return { a: ${Array.from({ length: 300 }, (_, n) => n).join(' + ')} };`),
  'a long chain of else if': wrap(
    `${Array.from({ length: 150 }, (_, n) => `if (input.a === ${n}) return { n: ${n} };`).join(' else ')} return {};`,
  ),
  'a long chain of calls': wrap(`return { a: input.a${'.trim()'.repeat(150)} };`),
  console: wrap('console.log("hello"); return {};'),
  'typed arrays, Intl and BigInt': wrap(
    'return { a: [...new Uint8Array(2)], b: String(BigInt(2)), c: new Intl.NumberFormat("en").format(1) };',
  ),
  'web globals': wrap(
    'const u = new URL(input.u); u.searchParams.set("a", btoa("b")); return { u, p: new URLSearchParams("a=1").get("a"), t: new TextDecoder().decode(new TextEncoder().encode(atob("YQ=="))), c: structuredClone(input) };',
  ),
  'generators and iterators': wrap('function* g() { yield 1; } return { a: [...g()] };'),
  'a catch without a name, and with a pattern': wrap(
    'try { JSON.parse(input.a); } catch { return {}; } try { x(); } catch ({ message }) { return { message }; } function x() {}',
  ),
  'defaults that read other parameters': wrap('const f = (a, b = a, { c = b } = {}) => a + b + c; return { v: f(1) };'),
  'private members and static blocks':
    'class C { #x = 1; static y; static { C.y = 2; } get x() { return this.#x; } }\nfunction execute() { return { x: new C().x }; }',
  'a regular expression with words': wrap('return { a: /import|eval\\(|process/.test(input.a) };'),
  'emoji in a text': wrap('return { a: "✓ 🎉 Grüße" };'),
};

/** Sources that the check must refuse, with a word of the expected message. */
const REFUSED: Record<string, [source: string, message: RegExp]> = {
  eval: [wrap('return eval(input.a);'), /eval is banned/],
  'indirect eval': [wrap('return (0, eval)("1");'), /eval is banned/],
  'optional eval': [wrap('return eval?.("1");'), /eval is banned/],
  'eval as a tag': [wrap('return eval`1`;'), /eval is banned/],
  'eval with a comment inside': [wrap('return eval/**/("1");'), /eval is banned/],
  'eval by another name': [wrap('const e = eval; return e("1");'), /eval is banned/],
  'eval in an escape': [wrap('return \\u0065val("1");'), /escapes/],
  'eval as a member of globalThis': [wrap('return globalThis.eval("1");'), /eval is banned/],
  'eval in pieces': [wrap('return globalThis["ev" + "al"]("1");'), /eval is banned/],
  'eval by an unknown member': [wrap('return globalThis[input.a]("1");'), /computed member/],
  'the global object by another name': [wrap('const g = globalThis; return g[input.a];'), /globalThis is not allowed/],
  'the global object by this': [`const x = this.eval("1");\n${wrap('return {};')}`, /eval is banned/],
  Function: [wrap('return Function("return 1")();'), /Function is banned/],
  'new Function': [wrap('return new Function("return 1")();'), /Function is banned/],
  'the constructor of a constructor': [
    wrap('return [].constructor.constructor("return 1")();'),
    /\.constructor is banned/,
  ],
  'constructor in pieces': [wrap('return []["con" + "structor"];'), /\["constructor"\] is banned/],
  'constructor in a template': [wrap('return []["filter"][`constructo${"r"}`];'), /constructor/],
  'constructor through a constant': [wrap('const k = "constructor"; return [][k];'), /constructor/],
  'constructor from character codes': [
    wrap('return [][String.fromCharCode(99, 111, 110, 115, 116, 114, 117, 99, 116, 111, 114)];'),
    /constructor/,
  ],
  'constructor joined': [wrap('return [][["construc", "tor"].join("")];'), /constructor/],
  'constructor concatenated': [wrap('return []["construc".concat("tor")];'), /constructor/],
  'constructor in a sequence': [wrap('return [][(0, "constructor")];'), /constructor/],
  'constructor by destructuring': [
    wrap('const { constructor: C } = input; return C("return 1")();'),
    /taking constructor/,
  ],
  'constructor by a computed pattern': [wrap('const { ["constructor"]: C } = input; return C;'), /taking constructor/],
  'constructor by reflection': [wrap('return Reflect.get(input, "constructor");'), /reflection/],
  'constructor by its descriptor': [
    wrap('return Object.getOwnPropertyDescriptor(input, "constructor");'),
    /reflection/,
  ],
  'the async function constructor': [
    wrap('return (async () => {}).constructor("return 1")();'),
    /\.constructor is banned/,
  ],
  __proto__: [wrap('return input.__proto__;'), /__proto__/],
  '__proto__ in brackets': [wrap('input["__proto__"].x = 1; return {};'), /__proto__/],
  '__proto__ in a literal': [wrap('return { __proto__: input };'), /__proto__/],
  __defineGetter__: [wrap('input.__defineGetter__("a", () => 1); return {};'), /__defineGetter__/],
  __lookupGetter__: [wrap('return input.__lookupGetter__("a");'), /__lookupGetter__/],
  prepareStackTrace: [wrap('Error.prepareStackTrace = (e, s) => s; return {};'), /prepareStackTrace/],
  require: [wrap('return require("fs");'), /require is banned/],
  import: [`import fs from "fs";\n${wrap('return {};')}`, /import is banned/],
  'dynamic import': [wrap('return import("fs");'), /import\(\) is banned/],
  'import.meta': [`const u = import.meta.url;\n${wrap('return {};')}`, /import\.meta is banned/],
  export: [`export ${wrap('return {};')}`, /export is not allowed/],
  'await outside a function': [`const a = await 1;\n${wrap('return { a };')}`, /await outside/],
  process: [wrap('return process.env;'), /process is banned/],
  'process through globalThis': [wrap('return globalThis.process;'), /process is banned/],
  child_process: [wrap('return child_process.exec("ls");'), /child_process is banned/],
  with: [wrap('with (input) { return a; }'), /with is banned/],
  debugger: [wrap('debugger; return {};'), /debugger/],
  WebAssembly: [wrap('return new WebAssembly.Memory({ initial: 1 });'), /WebAssembly is banned/],
  SharedArrayBuffer: [wrap('return new SharedArrayBuffer(1);'), /SharedArrayBuffer is banned/],
  Atomics: [wrap('return Atomics.load(input, 0);'), /Atomics is banned/],
  timers: [wrap('setTimeout(() => {}, 1); return {};'), /no timers/],
  Buffer: [wrap('return Buffer.from(input.a);'), /use Uint8Array with TextEncoder/],
  'a banned name in the default of a parameter, declared in the body': [
    wrap('function f(a = process) { var process; return a; } return { a: f() };'),
    /process is banned/,
  ],
  'an undeclared name': [wrap('return { a: lodash.chunk(input.a) };'), /"lodash" is not defined/],
  'module.exports': [`${wrap('return {};')}\nmodule.exports = execute;`, /module is banned/],
  'undeclared fetch': [wrap('return fetch(input.url);'), /fetch is used but "fetch" is not declared/],
  'undeclared fetch by another name': [
    wrap('const f = fetch; return f(input.url);'),
    /fetch is used but "fetch" is not declared/,
  ],
  'undeclared crypto': [wrap('return crypto.createHash("sha256");'), /crypto is used but "crypto" is not declared/],
  'undeclared fs.readFile': [
    wrap('return fs.readFile("a");'),
    /fs\.readFile is used but "fs\.readFile" is not declared/,
  ],
  'an undeclared Date.now()': [wrap('return Date.now();'), /^line 2:8: Date\.now reads the clock.*add "clock"/],
  'an undeclared new Date()': [
    wrap('return { a: new Date() };'),
    /^line 2:13: new Date\(\) reads the clock.*add "clock"/,
  ],
  'an undeclared Date()': [wrap('return Date();'), /Date\(\) reads the clock.*take the time as an input/],
  'an undeclared performance.now()': [wrap('return performance.now();'), /performance\.now reads the clock/],
  'an undeclared Temporal.Now': [wrap('return Temporal.Now.instant();'), /Temporal\.Now reads the clock/],
  'an undeclared Math.random()': [wrap('return Math.random();'), /Math\.random is random.*add "random"/],
  'an undeclared Math["random"]()': [wrap('return Math["ran" + "dom"]();'), /Math\.random is random/],
  'an undeclared crypto.randomUUID()': [
    wrap('return crypto.randomUUID();'),
    /crypto\.randomUUID is random.*add "random"/,
  ],
  'a name from another alphabet': [wrap('const еval = 1; return { еval };'), /not ASCII/],
  'a bidirectional mark': [wrap('/* \u202e */ return {};'), /U\+202E/],
  'a zero-width mark': [wrap('const a\u200b = 1; return {};'), /U\+200B/],
  'no entry': ['function main(input) { return {}; }', /neither execute nor run/],
  'more text than allowed': [wrap(`return "${'a'.repeat(33_000)}";`), /characters/],
  'more tokens than allowed': [wrap(`return [${'1,'.repeat(6_000)}];`), /tokens/],
  'a hundred levels': [wrap(`return ${'['.repeat(120)}${']'.repeat(120)};`), /deep/],
  'ten thousand parentheses': ['('.repeat(10_000), /deep/],
  'nine thousand negations': [wrap(`return ${'!'.repeat(9_000)}1;`), /deep|stack/],
};

const ALWAYS_BANNED_FILES = [
  'writeFile',
  'writeFileSync',
  'unlink',
  'rm',
  'rmdir',
  'appendFile',
  'truncate',
  'mkdir',
  'createWriteStream',
];

describe('static check', () => {
  for (const [name, source] of Object.entries(ACCEPTED)) {
    it(`the static check accepts ${name}`, () => assert.deepEqual(checkSource(source, []).violations, []));
  }
  for (const [name, [source, message]] of Object.entries(REFUSED)) {
    it(`the static check refuses ${name}`, () => {
      const { violations } = checkSource(source, []);
      assert.ok(
        violations.some((violation) => message.test(violation.message)),
        JSON.stringify(violations).slice(0, 600),
      );
    });
  }

  const everything = TOOL_APIS;
  it('a declaration does not allow banned code', () => {
    const sources = [
      'eval("1")',
      'new Function("")',
      'require("fs")',
      'import("fs")',
      'process.exit()',
      'child_process.fork()',
    ];
    for (const method of ALWAYS_BANNED_FILES) sources.push(`fs.${method}("a")`, `fs["${method}"]("a")`);
    for (const source of sources) {
      assert.notEqual(checkSource(wrap(`return ${source};`), everything).violations.length, 0, source);
    }
  });

  it('the static check accepts declared host functions', () => {
    const source =
      'async function execute(i) { const r = await fetch(i.u); return { t: await r.text(), h: crypto.createHash("sha256").update(await fs.readFile("a")).digest("hex"), n: Date.now(), x: Math.random() }; }';
    assert.deepEqual(checkSource(source, everything), { violations: [], warnings: [] });
  });

  it('the check warns about unused declarations', () => {
    const { violations, warnings } = checkSource(wrap('return {};'), ['crypto', 'clock', 'random']);
    assert.deepEqual(violations, []);
    assert.deepEqual(
      ['crypto', 'clock', 'random'].map((api) => warnings.some((warning) => warning.includes(`"${api}"`))),
      [true, true, true],
    );
  });

  it('crypto.randomUUID needs "random" and not "crypto"', () => {
    assert.deepEqual(checkSource(wrap('return { id: crypto.randomUUID() };'), ['random']), {
      violations: [],
      warnings: [],
    });
    const { violations } = checkSource(wrap('return [crypto.randomUUID(), crypto.createHash("md5")];'), ['random']);
    assert.match(violations[0]?.message ?? '', /^line 2:30: crypto is used/);
    assert.equal(violations.length, 1);
  });

  it('a date made from data does not count as a use of the clock', () => {
    for (const use of [
      'new Date(input.day).getFullYear()',
      'new Date(2024, 0, 1)',
      'Date.UTC(2024, 0)',
      'Date.parse(input.day)',
      'Temporal.PlainDate.from(input.day)',
      '((Math) => Math.random)(input)',
    ]) {
      assert.deepEqual(checkSource(wrap(`return { y: ${use} };`), []), { violations: [], warnings: [] }, use);
    }
  });

  it('the check warns once per name that is assigned but never declared, with its line', () => {
    const { warnings } = checkSource(wrap('total = 0;\ntotal = total + 1;\nreturn { total };'), []);
    assert.deepEqual(warnings, ['line 2:1: "total" is assigned but never declared; add let']);
  });

  it('the check reports every violation with its location, in source order', () => {
    const { violations } = checkSource(wrap('const a = require("x");\nreturn process.env[eval("a")];'), []);
    assert.deepEqual(
      violations.map(({ message }) => message.split(':', 2).join(':')),
      ['line 2:11', 'line 3:8', 'line 3:20'],
    );
  });

  const HINTS: Record<string, [source: string, hint: RegExp]> = {
    'const in an expression': [wrap('return (const a = 1);'), /line of its own/],
    'a missing comma': [wrap('return { a: 1 b: 2 };'), /comma or an operator is missing/],
    'a missing brace': ['function execute(input) { if (input.a) { return {}; }', /closing brace/],
    'a missing parenthesis': [
      wrap('const rows = input.rows.map((row) => row.n\nreturn { rows };'),
      /line 3:1: Unexpected token.*a closing bracket or parenthesis is missing before this place/,
    ],
  };
  for (const [name, [source, hint]] of Object.entries(HINTS)) {
    it(`the syntax error for ${name} has a hint and a line`, () => {
      const [violation] = checkSource(source, []).violations;
      assert.equal(violation?.code, 'TEMPER_FORGE_SYNTAX');
      assert.match(violation?.message ?? '', /^line \d+:\d+: /);
      assert.match(violation?.message ?? '', hint);
    });
  }

  it('messages about a source with control characters are printable', () => {
    const { violations } = checkSource(`function execute( { \u001b[31m evil \n`, []);
    for (const { message } of violations) assert.ok(!message.includes('\u001b'), message);
  });
});
