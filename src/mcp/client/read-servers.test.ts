import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { isTemperError } from '../../lib/errors.ts';
import type { JsonObject } from '../../lib/json.ts';
import { parseServers } from './read-servers.ts';

const local = (rest: JsonObject = {}): JsonObject => ({
  name: 'notes',
  folder: '/opt/notes',
  program: 'a.js',
  ...rest,
});
const remote = (rest: JsonObject = {}): JsonObject => ({ name: 'search', url: 'https://mcp.example.com/mcp', ...rest });

describe('the file of MCP servers', () => {
  it('a server is a program with its folders, or a URL with the variable of its token', () => {
    const servers = [local({ read: ['/data'], category: 'file_system' }), remote({ tokenEnvironment: 'SEARCH_TOKEN' })];
    assert.deepEqual(parseServers('f', { servers }), [
      {
        name: 'notes',
        category: 'file_system',
        folder: '/opt/notes',
        program: '/opt/notes/a.js',
        arguments: [],
        environment: {},
        read: ['/data'],
        write: [],
      },
      { name: 'search', category: 'mcp', url: 'https://mcp.example.com/mcp', tokenEnvironment: 'SEARCH_TOKEN' },
    ]);
    const { program: _program, ...rest } = local({ command: 'python3', arguments: ['-m', 'a'], programs: ['git'] });
    assert.deepEqual(parseServers('f', { servers: [rest] }), [
      {
        name: 'notes',
        category: 'mcp',
        command: 'python3',
        programs: ['git'],
        folder: '/opt/notes',
        arguments: ['-m', 'a'],
        environment: {},
        read: [],
        write: [],
      },
    ]);
    assert.equal(parseServers('f', { servers: [remote({ url: 'http://127.0.0.1:8000/mcp' })] }).length, 1);
  });

  for (const [entry, message] of [
    [local({ command: 'python3' }), /program is not known here/],
    [{ name: 'notes', command: '/bin/sh', folder: '/opt' }, /command must be the name of a program/],
    [{ name: 'notes', command: 'python3', folder: '/opt', programs: ['a/b'] }, /programs\[0\] must be the name/],
    [{ name: 'notes', command: 'python3' }, /folder must be a non-empty string/],
    [local({ program: 'bin/server' }), /program must be a JavaScript file/],
    [local({ program: '../a.js' }), /program must be in the folder/],
    [local({ read: ['data'] }), /read\[0\] must be an absolute path/],
    [local({ write: ['/'] }), /write\[0\] must be an absolute path/],
    [local({ name: 'a-name-of-twenty-one-c' }), /at most 20 characters/],
    [local({ category: 'memory' }), /category must be one of/],
    [local({ environment: { NODE_OPTIONS: 'x' } }), /is set by Temper/],
    [remote({ url: 'http://example.com/mcp' }), /url must be an https URL/],
    [remote({ url: 'https://a:b@example.com/mcp' }), /url must be an https URL/],
    [remote({ tokenEnvironment: 'SECRET' }), /ends with _TOKEN or _KEY/],
    [remote({ token: 'x' }), /token is not known here/],
  ] as [JsonObject, RegExp][]) {
    it(`a server is refused: ${JSON.stringify(entry)}`, () => {
      assert.throws(
        () => parseServers('f', { servers: [entry] }),
        (error) => isTemperError(error, 'TEMPER_MANIFEST_INVALID') && message.test(error.message),
      );
    });
  }
});
