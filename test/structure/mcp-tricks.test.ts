import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { describe, it } from 'node:test';
import { GATEWAY_TRICKS, HTTP_TRICKS, PROCESS_TRICKS } from '../fixtures/mcp/tricks.ts';

const PAGE = readFileSync(resolve(import.meta.dirname, '../../docs/security/mcp-servers.md'), 'utf8');

/** The tables of the page, in its order. */
const TABLES = PAGE.split(/\n\n/)
  .filter((block) => block.startsWith('| the server | the client |'))
  .map((table) => table.trim().split('\n').slice(2));

describe('the page of the tricks of MCP servers', () => {
  it('the page has each trick of the tests, and no other one', () => {
    const expected = [PROCESS_TRICKS, HTTP_TRICKS, GATEWAY_TRICKS].map((table) =>
      Object.values(table).map(({ trick, outcome }) => `| ${trick} | ${outcome} |`),
    );
    assert.deepEqual(TABLES, expected);
  });

  it('there are as many tricks as the page says, at least forty, each in other words', () => {
    const [, stated] = /(\d+) tricks, each with a test/.exec(PAGE) ?? [];
    assert.equal(TABLES.flat().length, Number(stated));
    assert.ok(TABLES.flat().length >= 40);
    for (const table of TABLES) assert.equal(new Set(table.map((row) => row.split('|')[1])).size, table.length);
  });
});
