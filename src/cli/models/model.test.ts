import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { NEVER_ABORTED } from '../../../test/support/stubs.ts';
import { rawHttpServer } from '../../models/raw-http-server.testing.ts';
import type { CliIo } from '../io.ts';
import { modelProbe, type ModelProbeOptions } from './model-probe.ts';
import { modelReplay } from './model-replay.ts';

interface RecordingTerminal extends CliIo {
  outputs: string[];
  errors: string[];
  /** Resolves at the next output. */
  printed: Promise<void>;
}

function aTerminal(cwd: string, signal = NEVER_ABORTED): RecordingTerminal {
  const { promise: printed, resolve } = Promise.withResolvers<void>();
  const outputs: string[] = [];
  const errors: string[] = [];
  return {
    outputs,
    errors,
    printed,
    out: (text) => {
      outputs.push(text);
      resolve();
    },
    error: (text) => errors.push(text),
    stdin: async () => '',
    lines: async function* () {},
    cwd,
    environment: {},
    colour: false,
    terminal: false,
    signal,
  };
}

async function inFolder(work: (folder: string) => Promise<void>): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'temper-model-'));
  try {
    await work(folder);
  } finally {
    await rm(folder, { recursive: true });
  }
}

const SCRIPT = `
rules:
  - when: {tools: [weather]}
    answer:
      toolCalls: [{name: weather, arguments: {city: "{{user}}"}}]
  - when: {lastUser: full}
    answer: {error: {status: 529, type: overloaded_error}}
`;
const TOOLS = JSON.stringify([{ name: 'weather', description: 'Weather', inputSchema: { type: 'object' } }]);

describe('temper model', () => {
  it('model replay serves a script until interrupted, and model probe works in every wire format', async () => {
    await inFolder(async (folder) => {
      await writeFile(join(folder, 's.yaml'), SCRIPT);
      await writeFile(join(folder, 'tools.json'), TOOLS);
      const interrupt = new AbortController();
      const server = aTerminal(folder, interrupt.signal);
      const served = modelReplay({ script: 's.yaml', port: 0 }, server);
      await server.printed;
      const url = server.outputs.join('').trim();
      for (const type of ['openai', 'openai-responses', 'anthropic', 'openai-compatible'] as const) {
        const probe = aTerminal(folder);
        const options: ModelProbeOptions = {
          type,
          baseUrl: type === 'anthropic' ? url : `${url}/v1`,
          model: 'm',
          message: 'Bern',
          tools: 'tools.json',
        };
        assert.equal(await modelProbe(options, probe), 0, probe.outputs.join(''));
        const events = probe.outputs.map((line) => JSON.parse(line) as Record<string, unknown>);
        assert.deepEqual(
          events.map((event) => event['type']),
          ['tool-call', 'end'],
        );
        assert.deepEqual(events[0]?.['call'], { id: 'call_1_1', name: 'weather', arguments: '{"city":"Bern"}' });
        const { tools: _, ...plain } = options;
        const failing = aTerminal(folder);
        assert.equal(await modelProbe({ ...plain, message: 'full' }, failing), 1);
        assert.match(failing.outputs[0] ?? '', /^\{"type":"error","code":"TEMPER_MODEL_OVERLOADED"/);
      }
      interrupt.abort();
      assert.equal(await served, 0);
    });
  });

  it('model replay reports the error in a script, and exits with 1', async () => {
    await inFolder(async (folder) => {
      await writeFile(join(folder, 's.yaml'), 'rules: 5\n');
      const terminal = aTerminal(folder);
      assert.equal(await modelReplay({ script: 's.yaml', port: 0 }, terminal), 1);
      assert.match(terminal.errors.join(''), /TEMPER_REPLAY_SCRIPT_INVALID: .*s\.yaml:1: rules must be a list/);
    });
  });

  it('model probe reports the error in a tools file, and exits with 2', async () => {
    await inFolder(async (folder) => {
      await writeFile(join(folder, 'tools.json'), '{}');
      const terminal = aTerminal(folder);
      const options: ModelProbeOptions = { type: 'openai', model: 'm', message: 'x', tools: 'tools.json' };
      assert.equal(await modelProbe(options, terminal), 2);
      assert.match(terminal.outputs[0] ?? '', /TEMPER_USAGE/);
    });
  });

  it('model probe sends the vendor key to another base URL only with --key-environment', async () => {
    const keys: (string | undefined)[] = [];
    await using server = await rawHttpServer((request, response) => {
      keys.push(request.headers.authorization);
      response.writeHead(503).end();
    });
    const terminal = { ...aTerminal('/'), environment: { OPENAI_API_KEY: 'vendor-key', MY_KEY: 'my-key' } };
    const options: ModelProbeOptions = { type: 'openai', baseUrl: `${server.url}/v1`, model: 'm', message: 'x' };
    assert.equal(await modelProbe(options, terminal), 1);
    assert.equal(await modelProbe({ ...options, keyEnvironment: 'MY_KEY' }, terminal), 1);
    assert.deepEqual(keys, ['Bearer none', 'Bearer my-key']);
  });
});
