import type { CallOptions } from '../../lib/call-options.ts';
import { TemperError } from '../../lib/errors.ts';
import { type Json, member } from '../../lib/json.ts';
import { checkedTool } from '../../tools/checks/checked-tool.ts';
import type { Tool, ToolDescriptor } from '../../tools/contract.ts';
import { optionalNumber, requiredText } from '../input.ts';
import type { Database, SqlParameter } from './database.ts';

export const SQL_QUERY_NAME = 'sql_query';

const DEFAULT_ROWS = 100;
const MAX_ROWS = 1_000;
const MAX_QUERY_CHARACTERS = 20_000;
const MAX_PARAMETERS = 100;
const MAX_TEXT_CHARACTERS = 10_000;

/** The descriptor names the databases that its caller may read. */
export function sqlQueryDescriptor(
  databases: readonly Pick<Database, 'name' | 'kind' | 'description'>[],
): ToolDescriptor {
  const listed = databases.map(
    ({ name, kind, description = '' }) => `${name} (${kind})${description === '' ? '' : `: ${description}`}`,
  );
  return {
    name: SQL_QUERY_NAME,
    description: `Read a database with one SQL statement. The database is read-only. Pass values as parameters: $1, $2 … in PostgreSQL, ? in SQLite. 64-bit integers and exact numbers come as text. Databases: ${listed.join('; ')}`,
    inputSchema: {
      type: 'object',
      properties: {
        connection: { type: 'string', enum: databases.map(({ name }) => name) },
        query: { type: 'string', minLength: 1, maxLength: MAX_QUERY_CHARACTERS },
        parameters: {
          type: 'array',
          maxItems: MAX_PARAMETERS,
          items: { type: ['string', 'number', 'boolean', 'null'], maxLength: MAX_TEXT_CHARACTERS },
        },
        maxRows: { type: 'integer', minimum: 1, maximum: MAX_ROWS, description: `${DEFAULT_ROWS} when absent` },
      },
      required: ['connection', 'query'],
      additionalProperties: false,
    },
    outputSchema: {
      type: 'object',
      properties: {
        columns: {
          type: 'array',
          items: {
            type: 'object',
            properties: { name: { type: 'string' }, type: { type: 'string' } },
            required: ['name', 'type'],
            additionalProperties: false,
          },
        },
        rows: { type: 'array', items: { type: 'array' } },
        truncated: { type: 'boolean', description: 'There are more rows, or a value was cut' },
      },
      required: ['columns', 'rows', 'truncated'],
      additionalProperties: false,
    },
    category: 'database',
    action: 'db:query',
    sideEffects: false,
    locality: 'Brokered',
    examples: databases.slice(0, 1).map(({ name, kind }) => ({
      connection: name,
      query: `SELECT name, total FROM orders WHERE total > ${kind === 'SQLite' ? '?' : '$1'} ORDER BY total DESC`,
      parameters: [100],
      maxRows: 10,
    })),
    failures: [
      { code: 'TEMPER_DATABASE_QUERY_FAILED', when: 'the database refuses the query, also one that would change data' },
      { code: 'TEMPER_DATABASE_UNAVAILABLE', when: 'the database does not answer' },
      { code: 'TEMPER_RATE_LIMITED', when: 'too many queries of the agent wait' },
    ],
  };
}

/** Reads the databases that the platform or the user configured. */
export function sqlQueryTool(databases: readonly Database[]): Tool {
  return checkedTool({
    descriptor: sqlQueryDescriptor(databases),
    check: checkSqlQuery,
    call: (input, { namespace, agent, op }) => queryDatabase(databases, input, `${namespace}/${agent}`, op),
  });
}

/** What a call refuses by its arguments alone. Throws TEMPER_TOOL_INPUT_INVALID. */
export function checkSqlQuery(input: Json): void {
  plainQuery(requiredText(input, 'query'));
}

/** One call of the tool, for `namespace/agent`. Throws TEMPER_TOOL_INPUT_INVALID and the errors of the database. */
export async function queryDatabase(
  databases: readonly Database[],
  input: Json,
  agent: string,
  op: CallOptions,
): Promise<Json> {
  const database = databaseOf(databases, requiredText(input, 'connection'));
  const question = {
    query: plainQuery(requiredText(input, 'query')),
    parameters: (member(input, 'parameters') ?? []) as SqlParameter[],
    maxRows: optionalNumber(input, 'maxRows') ?? DEFAULT_ROWS,
  };
  const { columns, rows, truncated } = await database.query(question, agent, op);
  return { columns, rows, truncated };
}

function databaseOf(databases: readonly Database[], connection: string): Database {
  const found = databases.find(({ name }) => name === connection);
  if (found !== undefined) return found;
  const known = databases.map(({ name }) => name).join(', ');
  throw new TemperError('TEMPER_TOOL_INPUT_INVALID', `"connection" must be one of ${known}`);
}

function plainQuery(query: string): string {
  if (query.includes('\0'))
    throw new TemperError('TEMPER_TOOL_INPUT_INVALID', '"query" must not contain a NUL character');
  return query;
}
