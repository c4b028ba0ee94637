import { type Static, Type } from 'typebox';
import { Compile } from 'typebox/compile';
import { closed } from '../../api/v1alpha1/common.ts';
import { TemperError } from '../../lib/errors.ts';
import type { Json } from '../../lib/json.ts';
import { isJsonObject } from '../../lib/json.ts';
import { SEARCH_ADAPTERS } from '../../toolbox/web/search/adapters.ts';
import { SEARCH_TYPES } from '../../toolbox/web/search/provider.ts';
import { Namespace } from '../users/messages.ts';

const Path = (description: string) => Type.String({ minLength: 1, maxLength: 4_096, description });
const namespaces = (description: string) => Type.Array(Namespace, { minItems: 1, maxItems: 1_000, description });

const SearchSection = Type.Object(
  {
    type: Type.Enum([...SEARCH_TYPES]),
    url: Type.Optional(Type.String({ minLength: 1, maxLength: 1_024, description: 'Where queries are sent.' })),
    private: Type.Optional(Type.Boolean({ description: 'The host is in a private network.' })),
    namespaces: Type.Optional(namespaces('Whose agents search. Absent: all.')),
    keyFile: Type.Optional(Path('File with the key, read for each query.')),
    caFile: Type.Optional(Path('PEM file with the only trusted authorities.')),
  },
  closed,
);
export type SearchService = Static<typeof SearchSection> & { readonly url: string };

const DatabaseSection = Type.Object(
  {
    name: Type.String({ pattern: '^[a-z0-9]([-a-z0-9]{0,48}[a-z0-9])?$', maxLength: 50 }),
    type: Type.Literal('PostgreSQL'),
    description: Type.Optional(Type.String({ maxLength: 300, description: 'What it contains, for the model.' })),
    host: Type.String({ pattern: '^[A-Za-z0-9]([-A-Za-z0-9.]{0,251}[A-Za-z0-9])?$', maxLength: 253 }),
    port: Type.Optional(Type.Integer({ minimum: 1, maximum: 65_535 })),
    database: Type.String({ minLength: 1, maxLength: 63 }),
    user: Type.String({ minLength: 1, maxLength: 63 }),
    namespaces: namespaces('Whose agents read it.'),
    passwordFile: Path('File with the password, read for each query.'),
    caFile: Type.Optional(Path('PEM file with the only trusted authorities.')),
    maxConnections: Type.Optional(Type.Integer({ minimum: 1, maximum: 50, description: 'At the same time.' })),
  },
  closed,
);
export type DatabaseService = Static<typeof DatabaseSection>;

const DatabasesSection = Type.Array(DatabaseSection, { maxItems: 50 });

const checkSearch = Compile(SearchSection);
const checkDatabases = Compile(DatabasesSection);

/**
 * The search service of a release. Queries go through the egress proxy, or to the one private host that the platform names. Throws
 * TEMPER_CONFIGURATION_INVALID with the field and the rule; `source` names the configuration.
 */
export function parseSearchService(value: unknown, hasEgress: boolean, source: string): SearchService | undefined {
  if (value === undefined) return undefined;
  if (!checkSearch.Check(value)) throw invalid(source, `webSearch${firstError(checkSearch, value)}`);
  const adapter = SEARCH_ADAPTERS[value.type];
  const service = { ...value, url: value.url ?? adapter.defaultUrl ?? '' };
  const problem = searchProblem(service, hasEgress);
  if (problem !== undefined) throw invalid(source, `webSearch.${problem}`);
  return service;
}

function searchProblem({ type, url: text, private: isPrivate, keyFile }: SearchService, hasEgress: boolean) {
  const url = URL.parse(text);
  if (url === null || url.username !== '' || url.password !== '') return 'url must be a URL without user and password';
  const isPlain = url.protocol === 'http:';
  if (url.protocol !== 'https:' && !(isPlain && isPrivate === true))
    return 'url must be https; http is for a host in a private network';
  if (isPlain && keyFile !== undefined) return 'keyFile needs an https url, because the key would be sent in the clear';
  if (keyFile === undefined && SEARCH_ADAPTERS[type].needsKey)
    return `keyFile must name the file with the key of ${type}`;
  if (isPrivate !== true && !hasEgress) return 'url is reached through the egress proxy; set egress, or private';
  return undefined;
}

/** The databases of a release. Throws TEMPER_CONFIGURATION_INVALID with the field and the rule; `source` names the configuration. */
export function parseDatabaseServices(value: unknown, source: string): DatabaseService[] {
  if (value === undefined) return [];
  const local = Array.isArray(value) ? value.findIndex(isSqlite) : -1;
  if (local >= 0) {
    const problem =
      'type SQLite is a file of one machine, which the replicas of a gateway do not share; use PostgreSQL';
    throw invalid(source, `databases/${local}: ${problem}`);
  }
  if (!checkDatabases.Check(value)) throw invalid(source, `databases${firstError(checkDatabases, value)}`);
  const twice = value.find(({ name }, index) => value.findIndex((other) => other.name === name) < index);
  if (twice === undefined) return value;
  throw invalid(source, `databases: name "${twice.name}" is used twice; give each database its own`);
}

function isSqlite(entry: unknown): boolean {
  return isJsonObject(entry as Json) && (entry as { type?: unknown }).type === 'SQLite';
}

function firstError(check: Pick<typeof checkSearch, 'Errors'>, value: unknown): string {
  const [first] = check.Errors(value);
  return `${first?.instancePath ?? ''} ${first?.message ?? 'is invalid'}`;
}

function invalid(source: string, problem: string): TemperError {
  return new TemperError('TEMPER_CONFIGURATION_INVALID', `${source}: ${problem}`);
}
