import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { rawHttpServer } from '../../models/raw-http-server.testing.ts';
import { aTerminal, type FakeTerminal } from '../io.testing.ts';
import { modelProbe, type ModelProbeOptions } from './model-probe.ts';
import { modelReplay } from './model-replay.ts';

interface ServingTerminal extends FakeTerminal {
  /** Resolves at the first output. */
  readonly serving: Promise<void>;
}

function aServingTerminal(cwd: string, signal: AbortSignal): ServingTerminal {
  const { promise: serving, resolve } = Promise.withResolvers<void>();
  const terminal = aTerminal();
  const out = (text: string): void => {
    terminal.out(text);
    resolve();
  };
  return { ...terminal, out, cwd, signal, serving };
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
      const server = aServingTerminal(folder, interrupt.signal);
      const served = modelReplay({ script: 's.yaml', port: 0 }, server);
      await server.serving;
      const url = server.printed().trim();
      for (const type of ['openai', 'openai-responses', 'anthropic', 'openai-compatible'] as const) {
        const probe = { ...aTerminal(), cwd: folder };
        const options: ModelProbeOptions = {
          type,
          baseUrl: type === 'anthropic' ? url : `${url}/v1`,
          model: 'm',
          message: 'Bern',
          tools: 'tools.json',
        };
        assert.equal(await modelProbe(options, probe), 0, probe.printed());
        const lines = probe.printed().trimEnd().split('\n');
        const events = lines.map((line) => JSON.parse(line) as Record<string, unknown>);
        assert.deepEqual(
          events.map((event) => event['type']),
          ['tool-call', 'end'],
        );
        assert.deepEqual(events[0]?.['call'], { id: 'call_1_1', name: 'weather', arguments: '{"city":"Bern"}' });
        const { tools: _, ...plain } = options;
        const failing = { ...aTerminal(), cwd: folder };
        assert.equal(await modelProbe({ ...plain, message: 'full' }, failing), 1);
        assert.match(failing.printed(), /^\{"type":"error","code":"TEMPER_MODEL_OVERLOADED"/);
      }
      interrupt.abort();
      assert.equal(await served, 0);
    });
  });

  it('model replay reports the error in a script, and exits with 1', async () => {
    await inFolder(async (folder) => {
      await writeFile(join(folder, 's.yaml'), 'rules: 5\n');
      const terminal = { ...aTerminal(), cwd: folder };
      assert.equal(await modelReplay({ script: 's.yaml', port: 0 }, terminal), 1);
      assert.match(terminal.errors(), /TEMPER_REPLAY_SCRIPT_INVALID: .*s\.yaml:1: rules must be a list/);
    });
  });

  it('model probe reports the error in a tools file, and exits with 2', async () => {
    await inFolder(async (folder) => {
      await writeFile(join(folder, 'tools.json'), '{}');
      const terminal = { ...aTerminal(), cwd: folder };
      const options: ModelProbeOptions = { type: 'openai', model: 'm', message: 'x', tools: 'tools.json' };
      assert.equal(await modelProbe(options, terminal), 2);
      assert.match(terminal.printed(), /TEMPER_USAGE/);
    });
  });

  it('model probe sends the vendor key to another base URL only with --key-environment', async () => {
    const keys: (string | undefined)[] = [];
    await using server = await rawHttpServer((request, response) => {
      keys.push(request.headers.authorization);
      response.writeHead(503).end();
    });
    const terminal = { ...aTerminal(), environment: { OPENAI_API_KEY: 'vendor-key', MY_KEY: 'my-key' } };
    const options: ModelProbeOptions = { type: 'openai', baseUrl: `${server.url}/v1`, model: 'm', message: 'x' };
    assert.equal(await modelProbe(options, terminal), 1);
    assert.equal(await modelProbe({ ...options, keyEnvironment: 'MY_KEY' }, terminal), 1);
    assert.deepEqual(keys, ['Bearer none', 'Bearer my-key']);
  });
});
