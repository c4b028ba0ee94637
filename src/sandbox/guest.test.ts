import assert from 'node:assert/strict';
import { createHash, createHmac } from 'node:crypto';
import { after, before, describe, it } from 'node:test';
import { systemClock } from '../lib/clock.ts';
import type { Json } from '../lib/json.ts';
import type { ToolApi } from '../api/v1alpha1/common.ts';
import type { SandboxFailure } from './port.ts';
import { createSupervisor, type Supervisor } from './supervisor.ts';
import { aJob, anOp, echoHost } from './sandbox.testing.ts';

let sandbox: Supervisor;

async function outputOf(source: string, apis: readonly ToolApi[] = [], input: Json = {}): Promise<Json> {
  const outcome = await sandbox.run(aJob(source, { apis, input }), echoHost, anOp());
  assert.ok(outcome.ok, JSON.stringify(outcome));
  return outcome.output;
}

const valueOf = (expression: string, apis?: readonly ToolApi[]) =>
  outputOf(`async function execute(input) { return ${expression}; }`, apis);

async function failureOf(source: string): Promise<{ code: SandboxFailure; message: string }> {
  const outcome = await sandbox.run(aJob(source), echoHost, anOp());
  assert.ok(!outcome.ok, JSON.stringify(outcome));
  return outcome;
}

describe('guest code', () => {
  before(async () => {
    sandbox = await createSupervisor({ clock: systemClock });
  });
  after(() => sandbox[Symbol.asyncDispose]());

  for (const [form, source] of Object.entries({
    'a function': 'function execute(input) { return input.x; }',
    'an async function': 'async function execute(input) { return input.x; }',
    'a function named run': 'function run(input) { return input.x; }',
    'a const': 'const execute = (input) => input.x;',
    'a let without a semicolon': 'let execute = async ({ x }) => x',
    'a var': 'var run = function (input) { return input.x };',
    'an assigned global': 'execute = (input) => input.x;',
    'a member of globalThis': 'globalThis.execute = (input) => input.x;',
    'strict code': '"use strict"; function execute(input) { return input.x; }',
    'sloppy code': 'function execute(input) { with (input) { y = x; } return y; }',
    'code that ends in a comment': 'function execute(input) { return input.x; } // done',
    'code with a hashbang': '#!/usr/bin/env node\nfunction execute(input) { return input.x; }',
    'code with a thenable result': 'function execute(input) { return { then(done) { done(input.x); } }; }',
    'code that logs': 'function execute(input) { console.log("x", input); console.error(); return input.x; }',
    'code that renames its own globals': 'const fetch = 1, process = 2; function execute(input) { return input.x; }',
  })) {
    it(`the sandbox runs ${form}`, async () => assert.equal(await outputOf(source, [], { x: 7 }), 7));
  }

  it('the error for an invalid source contains the location', async () => {
    const syntax = await failureOf('function execute() {\n  let a = ;\n}');
    assert.equal(syntax.code, 'TEMPER_SANDBOX_SYNTAX');
    assert.match(syntax.message, /tool\.js:2:11/);
    assert.equal((await failureOf('const helper = 1;')).code, 'TEMPER_SANDBOX_NO_ENTRY');
    assert.equal((await failureOf('const execute = 1;')).code, 'TEMPER_SANDBOX_NO_ENTRY');
    assert.equal((await failureOf('module.exports = () => 1;')).code, 'TEMPER_SANDBOX_EXCEPTION');
    assert.equal((await failureOf('import fs from "fs"; function execute() {}')).code, 'TEMPER_SANDBOX_SYNTAX');
  });

  it('the error for an exception contains its message and line', async () => {
    const thrown = await failureOf('function execute(input) {\n  return input.rows.length;\n}');
    assert.equal(thrown.code, 'TEMPER_SANDBOX_EXCEPTION');
    assert.match(thrown.message, /^TypeError: Cannot read .*\(line 2, column 21\)$/);
    assert.equal((await failureOf('function execute() { throw "plain"; }')).message, 'plain');
    assert.equal((await failureOf('async function execute() { throw null; }')).message, 'null');
    assert.equal(
      (await failureOf('function execute() { throw new SyntaxError("mine"); }')).code,
      'TEMPER_SANDBOX_EXCEPTION',
    );
    const objects: [thrown: string, message: string | RegExp][] = [
      ['{ code: 42, reason: "no" }', 'the tool threw {"code":42,"reason":"no"}'],
      ['{ message: "bad", code: 7 }', 'the tool threw {"message":"bad","code":7}'],
      ['[1, "two"]', 'the tool threw [1,"two"]'],
      ['{ escape: "\\u001b[2J" }', 'the tool threw {"escape":"\\u001b[2J"}'],
      ['{ text: "x".repeat(1e6) }', /^the tool threw \{"text":"x{391}…$/],
      ['{ toJSON() { throw 1; } }', 'the tool threw [object Object]'],
      ['{ n: 1n }', 'the tool threw [object Object]'],
      ['new Map([[1, 2]])', 'the tool threw [object Map]'],
      ['Object.create(null, { stack: { get() { throw 1; } } })', 'a value that cannot be read'],
    ];
    for (const [thrown, message] of objects) {
      const failure = await failureOf(`function execute() { throw ${thrown}; }`);
      assert.equal(failure.code, 'TEMPER_SANDBOX_EXCEPTION');
      if (typeof message === 'string') assert.equal(failure.message, message);
      else assert.match(failure.message, message);
    }
    const long = await failureOf('function execute() { throw new Error("\\u202e\\u0000" + "x".repeat(1e6)); }');
    assert.ok(long.message.length < 4_200 && long.message.includes('\\u{202e}\\u{0}'));
  });

  for (const [what, expression, words] of [
    ['undefined', 'undefined', /: result is undefined; return null/],
    ['a function', '() => 1', /: result is a function; return what it computes/],
    ['a symbol', 'Symbol("x")', /: result is a symbol/],
    ['NaN', '0 / 0', /: result is NaN; return null/],
    ['an infinite member', '({ mean: 1 / 0 })', /: result\.mean is Infinity/],
    ['a BigInt', '10n', /: result is a BigInt; return Number/],
    ['a BigInt in a list', '({ ids: [1, 10n] })', /: result\.ids\[1\] is a BigInt/],
    ['a boxed BigInt', '[Object(1n)]', /: result\[0\] is a BigInt/],
    ['a Map', 'new Map([[1, 2]])', /: result is a Map; return Object\.fromEntries/],
    ['a Set inside', '({ ids: [new Set()] })', /: result\.ids\[0\] is a Set; return Array\.from/],
    ['a derived Map', 'new (class Index extends Map {})()', /: result is a Map/],
    ['a promise inside', '({ later: Promise.resolve(1) })', /: result\.later is a Promise; await it/],
    [
      'an error deep inside',
      '({ rows: [1, { when: new RangeError("x") }] })',
      /: result\.rows\[1\]\.when is an Error; return its message/,
    ],
    ['a function as a member', '({ a: 1, f() {} })', /: result\.f is a function/],
    ['a symbol as a member', '({ s: Symbol() })', /: result\.s is a symbol/],
    ['a symbol as a name', '[{ [Symbol("x")]: 1 }]', /: result\[0\] is an object with a symbol/],
    ['undefined in a list', '[1, undefined]', /: result\[1\] is undefined/],
    ['a hole in a list', '[1, , 3]', /: result\[1\] is undefined/],
    ['a generator', '(function* () { yield 1; })()', /: result is a Generator; return Array\.from/],
    ['an async generator', '(async function* () { yield 1; })()', /: result is an AsyncGenerator; collect/],
    ['an iterator', '({ keys: new Map().keys() })', /: result\.keys is a Map Iterator; return Array\.from/],
    ['a typed array', '({ bytes: new Uint8Array([1]) })', /: result\.bytes is a Uint8Array; return Array\.from/],
    ['a buffer', 'new ArrayBuffer(1)', /: result is an ArrayBuffer; return Array\.from\(new Uint8Array/],
    ['a regular expression', '({ "odd name": /x/ })', /: result\["odd name"\] is a RegExp/],
    ['an invalid date', '[new Date("soon")]', /: result\[0\] is an invalid Date; return null/],
    ['the arguments', '(function () { return arguments; })(1)', /: result is an Arguments; return Array\.from/],
    [
      'private members',
      '(new (class { a = 1; #b = 2; b() { return this.#b; } })())',
      /: result is an instance of a class with private/,
    ],
    ['inherited private members', '(new (class extends class { #b = 2; } { a = 1; })())', /class with private/],
    ['a proxy of a Map in a list', 'new Proxy([new Map()], {})', /: result\[0\] is a Map/],
    [
      'a circle',
      '(() => { const a = {}; a.a = [a]; return a; })()',
      /: result\.a\[0\] is an object that contains itself/,
    ],
    ['a failing toJSON', '({ toJSON() { throw new Error("no"); } })', /no/],
    ['a toJSON that returns a Map', '[{ toJSON: () => new Map() }]', /: result\[0\] is a Map/],
  ] as const) {
    it(`the sandbox refuses ${what} as a result`, async () => {
      const failure = await failureOf(`function execute() { return ${expression}; }`);
      assert.equal(failure.code, 'TEMPER_SANDBOX_OUTPUT_INVALID');
      assert.match(failure.message, words);
    });
  }

  it('the sandbox refuses the generator of an entry function that is a generator', async () => {
    const failure = await failureOf('function* execute() { yield 1; }');
    assert.match(failure.message, /: result is a Generator; return Array\.from/);
  });

  it('a result is encoded like JSON: dates become text, undefined members are omitted, null stays', async () => {
    const output = await valueOf('({ at: new Date(0), gone: undefined, none: null, list: [1, null], empty: {} })');
    assert.deepEqual(output, { at: '1970-01-01T00:00:00.000Z', none: null, list: [1, null], empty: {} });
  });

  it('a result keeps the public members of class instances, the value of toJSON, and objects that are used twice', async () => {
    const output = await valueOf(`(() => {
      class Point { constructor(x) { this.x = x; } }
      class Sealed { #x = 1; toJSON() { return { x: this.#x }; } }
      const twice = { n: 1 };
      return [new Point(1), new Sealed(), twice, twice, Object.create(null), new Number(2), 'a1'.match(/([0-9])/)];
    })()`);
    assert.deepEqual(output, [{ x: 1 }, { x: 1 }, { n: 1 }, { n: 1 }, {}, 2, ['1', '1']]);
  });

  it('a guest cannot write a raw number, and a number beyond the largest one is no result', async () => {
    assert.deepEqual(await valueOf('[typeof JSON.rawJSON, typeof JSON.isRawJSON]'), ['undefined', 'undefined']);
    const source = `JSON.stringify = () => '1e999'; const parse = JSON.parse;
      function execute() { return { toJSON: () => parse('[1e999]') }; }`;
    assert.match((await failureOf(source)).message, /result\[0\] is Infinity/);
  });

  for (const [api, uses] of Object.entries({
    clock: [
      'Date.now()',
      'new Date()',
      'Date()',
      'Reflect.construct(Date, [])',
      'new (class extends Date {})()',
      'new Date(0).constructor.now()',
      'performance.now()',
      'performance.timeOrigin',
      'Temporal.Now.instant()',
      'new Intl.DateTimeFormat().format()',
      'new Intl.DateTimeFormat().formatToParts()',
    ],
    random: ['Math.random()', '[3, 1, 2].sort(() => Math.random() - 0.5)', 'crypto.randomUUID()'],
  } as const)) {
    for (const use of uses) {
      it(`${use} throws and names "${api}" in a tool that does not declare it`, async () => {
        const source = `function execute() { return String(${use}); }`;
        const declared: ToolApi[] = ['crypto', api as 'clock' | 'random'];
        const outcome = await sandbox.run(aJob(source, { apis: ['crypto'] }), echoHost, anOp());
        assert.ok(!outcome.ok, JSON.stringify(outcome));
        assert.equal(outcome.code, 'TEMPER_SANDBOX_EXCEPTION');
        assert.match(outcome.message, new RegExp(`add "${api}" to the allowlist.*line 1`));
        assert.equal(typeof (await outputOf(source, declared)), 'string');
      });
    }
  }

  it('a tool that declares clock and random gets the present time and random numbers', async () => {
    const look = '[Date.now(), +new Date(), Math.random(), Math.random(), performance.timeOrigin]';
    const [now, date, first, second, origin] = (await valueOf(look, ['clock', 'random'])) as [
      number,
      number,
      number,
      number,
      number,
    ];
    for (const time of [now, date, origin]) assert.ok(Math.abs(time - Date.now()) < 60_000);
    assert.notEqual(first, second);
  });

  it('two runs with the same time, seed and answers give the same output', async () => {
    const source = `async function execute() {
      const look = () => [Date.now(), +new Date(), Date(), performance.now(), performance.timeOrigin, Math.random(),
        crypto.randomUUID(), Temporal.Now.instant(), Temporal.Now.plainDateISO(), new Intl.DateTimeFormat().format()];
      const before = look();
      await fetch('https://x.test/');
      return [before, look()];
    }`;
    const run = async (seed: string, answerTimes?: readonly number[]) => {
      const timeAndRandomness = { startTime: 1_000_000, seed, ...(answerTimes === undefined ? {} : { answerTimes }) };
      const job = aJob(source, { apis: ['clock', 'random', 'fetch'], timeAndRandomness });
      const outcome = await sandbox.run(job, echoHost, anOp());
      assert.ok(outcome.ok, JSON.stringify(outcome));
      return { output: outcome.output as Json[][], answers: outcome.usage.answers ?? [] };
    };
    const first = await run('00112233445566778899aabbccddeeff');
    assert.deepEqual(first.output[0]?.slice(0, 5), [
      1_000_000,
      1_000_000,
      new Date(1_000_000).toString().replace(/GMT.*/, 'GMT+0000 (Coordinated Universal Time)'),
      0,
      1_000_000,
    ]);
    assert.ok(Math.abs((first.output[1]?.[0] as number) - Date.now()) < 60_000, 'the answer brought the present time');
    assert.deepEqual(
      first.answers.map(({ call }) => call),
      [1],
    );
    const again = await run(
      '00112233445566778899aabbccddeeff',
      first.answers.map(({ time }) => time),
    );
    assert.deepEqual(again, first);
    const other = await run(
      '00112233445566778899aabbccddeefe',
      first.answers.map(({ time }) => time),
    );
    assert.notEqual(other.output[0]?.[5], first.output[0]?.[5]);
    assert.notEqual(other.output[0]?.[6], first.output[0]?.[6]);
  });

  it('no function gives its source text, so a tool cannot read its own comments and names', async () => {
    const shapes = [
      'execute',
      '() => 1 /* note */',
      'class A { b() {} }',
      'Array.prototype.push',
      'async function x() {}',
    ];
    const read = '(f) => [String(f), f + "", f.toString(), Function.prototype.toString.call(f), `${f}`]';
    const output = await valueOf(`[${shapes.join()}].map(${read})`);
    const expected = Array.from({ length: 5 }, () => 'function () { [native code] }');
    assert.deepEqual(
      output,
      shapes.map(() => expected),
    );
    assert.equal(
      await valueOf('(() => { try { Function.prototype.toString.call({}); } catch (e) { return e.name; } })()'),
      'TypeError',
    );
  });

  it('a request that the runner cannot read gives the guest a plain message, without an object or a stack of the runner', async () => {
    for (const forged of ['null', '1', '{}', '"text"', '[]', '{ parts: null }', '{ parts: [null], key: 1 }']) {
      const source = `function execute() {
        Object.prototype.toJSON = Array.prototype.toJSON = String.prototype.toJSON = function () { return ${forged}; };
        try { crypto.createHash('md5').update('x').digest(); } catch (error) {
          delete Object.prototype.toJSON; delete Array.prototype.toJSON; delete String.prototype.toJSON;
          return { own: error instanceof Error, stack: error.stack, keys: Object.getOwnPropertyNames(error) };
        }
        delete Object.prototype.toJSON; delete Array.prototype.toJSON; delete String.prototype.toJSON;
        return null;
      }`;
      const thrown = (await outputOf(source, ['crypto'])) as { own: boolean; stack: string; keys: string[] } | null;
      assert.equal(thrown?.own, true, forged);
      assert.deepEqual(thrown.keys, ['stack', 'message']);
      assert.doesNotMatch(thrown.stack, /node:|evalmachine|\/(?:app|work|home|usr)|answerGuest|receive|onMessage/);
    }
  });

  it('a tool that declares only random has randomUUID, and createHash names "crypto"', async () => {
    assert.equal(await valueOf('/^[0-9a-f-]{36}$/.test(crypto.randomUUID())', ['random']), true);
    const message = await valueOf('(() => { try { crypto.createHash("md5") } catch (e) { return e.message } })()', [
      'random',
    ]);
    assert.match(JSON.stringify(message), /add ..crypto.. to the allowlist/);
  });

  it('guest code computes with given dates in UTC and English', async () => {
    const output = await valueOf(`[new Date(2020, 1, 29, 12).toISOString(), new Date('2024-03-10').getTime(),
      new Date(2020, 0, 1).toString(), new Date(0).toLocaleDateString(), (1234567.5).toLocaleString(), Date.UTC(2000, 0),
      Date.parse('2000-01-01'), Temporal.PlainDate.from('2024-02-28').add({ days: 2 }), new Date(0) instanceof Date, Date.length, Intl.DateTimeFormat().resolvedOptions().timeZone]`);
    assert.deepEqual(output, [
      '2020-02-29T12:00:00.000Z',
      1_710_028_800_000,
      'Wed Jan 01 2020 00:00:00 GMT+0000 (Coordinated Universal Time)',
      '1/1/1970',
      '1,234,567.5',
      946_684_800_000,
      946_684_800_000,
      '2024-03-01',
      true,
      7,
      'UTC',
    ]);
  });

  it('guest code has only the declared host functions', async () => {
    const look = '[typeof fetch, typeof fs, typeof crypto, typeof process, typeof require, typeof setTimeout]';
    const none = Array.from({ length: 6 }, () => 'undefined');
    assert.deepEqual(await valueOf(look), none);
    assert.deepEqual(await valueOf(look, ['fetch']), ['function', ...none.slice(1)]);
    assert.deepEqual(await valueOf(look, ['fs.readFile']), ['undefined', 'object', ...none.slice(2)]);
    assert.deepEqual(await valueOf('[Object.keys(fs), typeof crypto]', ['fs.readFile']), [
      ['readFile', 'promises'],
      'undefined',
    ]);
    assert.deepEqual(await valueOf('Object.keys(crypto)', ['crypto']), ['createHash', 'createHmac', 'randomUUID']);
  });

  it('fetch resolves with a response in the standard form', async () => {
    const output = await outputOf(
      `async function execute() {
        const response = await fetch(new String('https://x.test/a'), { method: 'POST', headers: { A: 'b' }, body: 'c' });
        const { ok, status, url, redirected } = response;
        const { headers } = response;
        return { ok, status, url, redirected, type: headers.get('Content-Type'), none: headers.get('toString'), has: headers.has('x'),
          same: (await response.text()) === JSON.stringify(await response.json()), body: await response.json() };
      }`,
      ['fetch'],
    );
    assert.deepEqual(output, {
      ok: true,
      status: 201,
      url: 'https://x.test/',
      redirected: false,
      type: 'text/plain',
      none: null,
      has: false,
      same: true,
      body: { url: 'https://x.test/a', method: 'POST', headers: { A: 'b' }, body: 'c' },
    });
  });

  it('guest code can wait for several host calls at once', async () => {
    const source = `async function execute() {
      const texts = await Promise.all(['a', 'b', 'c'].map((path) => fs.readFile(path, 'utf8')));
      return texts.map((text) => JSON.parse(text).path);
    }`;
    assert.deepEqual(await outputOf(source, ['fs.readFile']), ['a', 'b', 'c']);
  });

  it('hashes equal those of Node', async () => {
    const output = await valueOf(
      `[crypto.createHash('sha256').update('é').update(new Uint8Array([1, 255])).digest('hex'),
        crypto.createHash('MD5').update('6869', 'hex').digest('base64'),
        crypto.createHmac('sha512', 'key').update('data').digest('hex'),
        crypto.createHmac('sha-1', new Uint8Array([7])).update('').digest()]`,
      ['crypto'],
    );
    const sha256 = createHash('sha256')
      .update('é')
      .update(new Uint8Array([1, 255]));
    assert.deepEqual(output, [
      sha256.digest('hex'),
      createHash('md5').update('hi').digest('base64'),
      createHmac('sha512', 'key').update('data').digest('hex'),
      createHmac('sha1', new Uint8Array([7]))
        .update('')
        .digest('hex'),
    ]);
    for (const wrong of [
      'createHash("whirlpool").digest()',
      'createHash("md5").update({}).digest()',
      'createHash("md5").digest("ucs2")',
    ]) {
      const outcome = await sandbox.run(
        aJob(`function execute() { return crypto.${wrong}; }`, { apis: ['crypto'] }),
        echoHost,
        anOp(),
      );
      assert.equal(outcome.ok ? '' : outcome.code, 'TEMPER_SANDBOX_EXCEPTION');
    }
  });

  it('guest code has the web globals, with their standard names', async () => {
    const output = await valueOf(`(() => {
      const url = new URL('../b?x=1#y', 'https://user@h.test:8443/a/c');
      url.searchParams.set('z', 'é');
      return { url, host: url.host, z: url.searchParams.get('z'), text: new TextDecoder().decode(new TextEncoder().encode('é')),
        base64: [btoa('hi'), atob('aGk=')], form: new URLSearchParams({ a: 'b c' }).toString(),
        clone: structuredClone({ at: new Date(0) }), bytes: Array.from(new TextEncoder().encode('€')),
        names: [URL, URLSearchParams, TextEncoder, TextDecoder, btoa, atob, structuredClone].map(({ name }) => name),
        relative: URL.canParse('x'), hidden: Object.keys(globalThis) };
    })()`);
    assert.deepEqual(output, {
      url: 'https://user@h.test:8443/b?x=1&z=%C3%A9#y',
      host: 'h.test:8443',
      z: 'é',
      text: 'é',
      base64: ['aGk=', 'hi'],
      form: 'a=b+c',
      clone: { at: '1970-01-01T00:00:00.000Z' },
      bytes: [226, 130, 172],
      names: ['URL', 'URLSearchParams', 'TextEncoder', 'TextDecoder', 'btoa', 'atob', 'structuredClone'],
      relative: false,
      hidden: ['execute'],
    });
  });

  it('guest code may declare or assign the names of the web globals itself', async () => {
    assert.equal(
      await outputOf('const URL = 1; function atob() { return 2; } function execute() { return URL + atob(); }'),
      3,
    );
    assert.equal(await outputOf('var URL = 1; btoa = () => 2; function execute() { return URL + btoa(); }'), 3);
  });

  it('a web global that is given too much work ends at the deadline of the tool', async () => {
    for (const work of [
      'for (;;) new URL("http://h/" + "%41/".repeat(1000))',
      'for (;;) structuredClone([{ a: 1 }])',
    ]) {
      const job = aJob(`function execute() { ${work} }`, { limits: { durationMilliseconds: 200 } });
      const outcome = await sandbox.run(job, echoHost, anOp());
      assert.equal(outcome.ok ? '' : outcome.code, 'TEMPER_SANDBOX_TIMEOUT');
    }
    const deep = 'let a = {}; for (let i = 0; i < 1e5; i += 1) a = { a }; structuredClone(a);';
    assert.match((await failureOf(`function execute() { ${deep} }`)).message, /^RangeError/);
  });

  it('guest code cannot use code from text, uncounted memory or shared memory', async () => {
    const look = `[typeof WebAssembly, typeof SharedArrayBuffer, typeof Atomics, typeof WeakRef, typeof FinalizationRegistry,
      new ArrayBuffer(8, { maxByteLength: 1e9 }).resizable, typeof ArrayBuffer.prototype.resize, new ArrayBuffer(8).byteLength]`;
    const gone = Array.from({ length: 5 }, () => 'undefined');
    assert.deepEqual(await valueOf(look), [...gone, false, 'undefined', 8]);
    for (const way of [
      'eval("1")',
      'Function("return 1")()',
      'new Function("1")',
      '(async () => {}).constructor("1")',
      '(function* () {}).constructor("1")',
      '(async function* () {}).constructor("1")',
      'Reflect.construct(Function, ["1"])',
    ]) {
      assert.match((await failureOf(`function execute() { return ${way}; }`)).message, /^EvalError/, way);
    }
    assert.deepEqual(
      await valueOf('[(() => {}) instanceof Function, Function.prototype === Object.getPrototypeOf(() => {})]'),
      [true, true],
    );
  });

  it('guest code reaches no Function constructor from any object', async () => {
    const walk = `function execute() {
      const seen = new Set(), queue = [globalThis, (() => {}), (async () => {}), (function* () {}), Symbol, new Error('x'), Promise.resolve()];
      const names = [];
      while (queue.length > 0) {
        const value = queue.pop();
        if ((typeof value !== 'object' && typeof value !== 'function') || value === null || seen.has(value)) continue;
        seen.add(value);
        if (typeof value === 'function') names.push(String(value.name));
        queue.push(Object.getPrototypeOf(value));
        for (const key of Reflect.ownKeys(value)) {
          const descriptor = Reflect.getOwnPropertyDescriptor(value, key);
          queue.push(descriptor.value, descriptor.get, descriptor.set);
          try { queue.push(value[key]); } catch {}
        }
      }
      const engine = ['Isolate', 'Context', 'Reference', 'ExternalCopy', 'Callback', 'NativeModule', 'Script', 'Module', 'Dereference', 'Copy'];
      return { objects: seen.size, found: names.filter((name) => engine.includes(name)) };
    }`;
    for (const apis of [[], ['fetch', 'fs.readFile', 'crypto', 'clock', 'random']] as const) {
      const { objects, found } = (await outputOf(walk, apis)) as { objects: number; found: string[] };
      assert.ok(objects > 500, `it saw only ${objects} objects`);
      assert.deepEqual(found, []);
    }
  });

  it('a stack contains no path of the host', async () => {
    const stacks = await outputOf(
      `async function execute() {
        const stacks = [new Error('a').stack];
        Error.prepareStackTrace = (error, sites) => sites.map((site) => [site.getFileName(), site.getFunctionName(), typeof site.getThis(), typeof site.getFunction(), String(site)]);
        stacks.push(new Error('b').stack);
        try { null.x } catch (error) { stacks.push(error.stack); }
        try { crypto.createHash('none').digest(); } catch (error) { stacks.push(error.stack); }
        return JSON.stringify(stacks);
      }`,
      ['crypto'],
    );
    assert.doesNotMatch(JSON.stringify(stacks), /node_modules|file:|node:|\.ts|\/work|\/home/);
  });
});
