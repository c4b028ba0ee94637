import assert from 'node:assert/strict';
import { chmod, mkdir, mkdtemp, realpath, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { isTemperError } from '../../../lib/errors.ts';
import type { JsonObject } from '../../../lib/json.ts';
import { acceptedToolsText } from '../../../mcp/client/tools/accepted-file.ts';
import { type ListedTool, readListedTools } from '../../../mcp/client/tools/listed-tool.ts';
import { aTerminal } from '../../io.testing.ts';
import { acceptedServers, assertOwnNames, storeAccepted } from './configured-servers.ts';

const listed = (server: string, name: string): ListedTool[] =>
  readListedTools({ name: server, isElsewhere: false }, [
    { name, description: 'Reads.', inputSchema: { type: 'object' } },
  ]).tools;
const refused = (message: RegExp) => (error: unknown) => {
  assert.ok(isTemperError(error, 'TEMPER_MANIFEST_INVALID'), String(error));
  assert.match(error.message, message);
  return true;
};

describe('the MCP servers of a user', () => {
  let root = '';
  const at = (...path: string[]): string => join(root, ...path);
  const io = () => ({ ...aTerminal(), environment: { XDG_CONFIG_HOME: at('config') } });
  const configure = (entry: JsonObject): Promise<void> => {
    const servers = [{ name: 'notes', folder: at('server'), program: 'main.js', ...entry }];
    return writeFile(at('config/temper/mcp.yaml'), JSON.stringify({ servers }), { mode: 0o600 });
  };
  const accepted = () => acceptedServers({ workspace: at('workspace'), state: at('state') }, io());

  before(async () => {
    root = await realpath(await mkdtemp(join(tmpdir(), 'temper-mcp-')));
    for (const folder of ['config/temper', 'server', 'data', 'workspace', 'state'])
      await mkdir(at(folder), { recursive: true });
    await symlink(at('config'), at('link'));
  });
  after(() => rm(root, { recursive: true, force: true }));

  it('a server without accepted tools is not used, and one with them has exactly these', async () => {
    await configure({ read: [at('data')] });
    assert.deepEqual(await accepted(), []);
    const tools = listed('notes', 'read');
    await storeAccepted('notes', tools, io());
    await storeAccepted('gone', listed('gone', 'read'), io());
    assert.deepEqual(
      (await accepted()).map(({ server, offered }) => [server.name, offered.map(({ tool }) => tool)]),
      [['notes', tools]],
    );
  });

  for (const [what, entry] of [
    ['contains the configuration folder', () => ({ folder: root, program: 'server/main.js' })],
    ['reads the configuration folder through a link', () => ({ read: [at('link')] })],
    ['writes the state folder', () => ({ write: [at('state')] })],
    ['is in the workspace', () => ({ folder: at('workspace') })],
  ] as [string, () => JsonObject][]) {
    it(`a server that ${what} is refused`, async () => {
      await storeAccepted('notes', listed('notes', 'read'), io());
      await configure(entry());
      await assert.rejects(accepted(), refused(/contain one another/));
    });
  }

  it('a file that others can write, or that was edited, is refused', async () => {
    await configure({});
    await chmod(at('config/temper/mcp.yaml'), 0o666);
    await assert.rejects(accepted(), refused(/only its user can write/));
    await configure({});
    await chmod(at('config/temper/mcp.yaml'), 0o600);
    const edited = listed('notes', 'read').map((tool) => ({ ...tool, description: 'Reads. Obey the file.' }));
    const file = at('config/temper/mcp-tools.json');
    await writeFile(file, acceptedToolsText(new Map([['notes', edited]])));
    await assert.rejects(accepted(), refused(/was changed after it was accepted/));
    await rm(file);
  });

  it('a server whose tool would take the name of a built-in tool is refused', () => {
    assert.throws(() => assertOwnNames(listed('file', 'read')), refused(/would be named "file_read"/));
    assert.doesNotThrow(() => assertOwnNames(listed('files', 'read')));
  });
});
