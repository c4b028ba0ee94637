import assert from 'node:assert/strict';
import { mkdtemp, mkdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { loadManifests } from '../../../api/manifests.ts';
import { isTemperError } from '../../../lib/errors.ts';
import { pinnedDigest, readListedTools } from '../../../mcp/client/tools/listed-tool.ts';
import { aTerminal } from '../../io.testing.ts';
import { storeAccepted } from './configured-servers.ts';
import { type PrintedManifestOptions, printManifests } from './print-manifests.ts';

const { tools } = readListedTools({ name: 'search', isElsewhere: true }, [
  {
    name: 'find',
    description: 'Finds.\u001b[2J\u{e0041}\nSecond line: x',
    inputSchema: { type: 'object', properties: { '\u202etext': { type: 'string' } } },
    annotations: { readOnlyHint: true },
  },
  { name: 'Open_', description: 'x'.repeat(3_000), inputSchema: { type: 'object' }, outputSchema: { type: 'object' } },
]);

describe('temper mcp manifest', () => {
  let root = '';
  const print = async (options: Partial<PrintedManifestOptions> = {}) => {
    const io = { ...aTerminal(), environment: { XDG_CONFIG_HOME: root } };
    const code = await printManifests({ server: 'search', output: 'yaml', ...options }, io);
    return { code, out: io.printed(), errors: io.errors() };
  };
  const failsWith = (work: Promise<unknown>, words: RegExp): Promise<void> =>
    assert.rejects(work, (error) => isTemperError(error) && words.test(error.message));

  before(async () => {
    root = await mkdtemp(join(tmpdir(), 'temper-mcp-manifest-'));
    await mkdir(join(root, 'temper'));
    await mkdir(join(root, 'packages'));
    const servers = [
      { name: 'search', category: 'web', url: 'https://mcp.example.com/mcp' },
      { name: 'git', command: 'python3', folder: join(root, 'packages') },
      { name: 'local', url: 'http://127.0.0.1:8000/mcp' },
      { name: 'empty', url: 'https://mcp.example.org/mcp' },
    ];
    await writeFile(join(root, 'temper/mcp.yaml'), JSON.stringify({ servers }), { mode: 0o600 });
    await storeAccepted('search', tools, { ...aTerminal(), environment: { XDG_CONFIG_HOME: root } });
  });
  after(() => rm(root, { recursive: true }));

  it('accepted tools are valid Capabilities with the digests of what the user read, safe for a terminal', async () => {
    const { code, out, errors } = await print({ connection: 'search-key', namespace: 'team-a' });
    assert.equal(code, 0);
    assert.match(errors, /description of search_open_ is cut to 2048/);
    for (const hidden of ['\u001b', '\u202e', '\u{e0041}']) assert.ok(!out.includes(hidden), out);
    await writeFile(join(root, 'printed.yaml'), out);
    const loaded = await loadManifests([join(root, 'printed.yaml')]);
    assert.deepEqual([loaded.problems, loaded.warnings], [[], []]);
    const objects = loaded.objects.map(({ object }) => object);
    assert.deepEqual(
      objects.map(({ metadata }) => metadata),
      [
        { name: 'search-find', namespace: 'team-a' },
        { name: 'search-open', namespace: 'team-a' },
      ],
    );
    const [find] = tools;
    assert.ok(find !== undefined);
    assert.deepEqual(objects[0]?.spec, {
      type: 'Tool',
      description: find.description,
      hasSideEffects: false,
      tool: { name: 'search_find', category: 'web', action: 'comms:external', inputSchema: find.inputSchema },
      backend: {
        mcp: {
          url: 'https://mcp.example.com/mcp',
          tool: 'find',
          connection: 'search-key',
          digest: pinnedDigest(find),
        },
      },
    });
  });

  it('a server that runs here is named as one of the platform, and takes no connection', async () => {
    const listed = readListedTools({ name: 'git', isElsewhere: false }, [
      { name: 'log', description: 'Reads the log.', inputSchema: { type: 'object' } },
    ]).tools;
    await storeAccepted('git', listed, { ...aTerminal(), environment: { XDG_CONFIG_HOME: root } });
    const { out } = await print({ server: 'git', output: 'json' });
    const { items } = JSON.parse(out) as { items: { spec: { backend: unknown } }[] };
    const [log] = listed;
    assert.ok(log !== undefined);
    assert.deepEqual(items[0]?.spec.backend, { mcp: { server: 'git', tool: 'log', digest: pinnedDigest(log) } });
    await failsWith(print({ server: 'git', connection: 'key' }), /--connection is for servers with a url/);
  });

  it('one tool is printed alone, as JSON when that is asked', async () => {
    const { out } = await print({ tool: ['search_find'], output: 'json' });
    const { items } = JSON.parse(out) as { items: { metadata: object }[] };
    assert.deepEqual(
      items.map(({ metadata }) => metadata),
      [{ name: 'search-find' }],
    );
  });

  it('what was not accepted, and a server without an https URL, are refused with the next step', async () => {
    await failsWith(
      print({ tool: ['search_gone'] }),
      /"search_gone" .* is not accepted; read it with temper mcp tools search/,
    );
    await failsWith(print({ server: 'empty' }), /no tool of MCP server "empty" is accepted/);
    await failsWith(print({ server: 'local' }), /no https URL/);
  });
});
