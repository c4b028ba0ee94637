import { assertKnownMembers, invalidMember, requiredText } from '../../lib/config/config-members.ts';
import { isJsonObject } from '../../lib/json.ts';
import { SEARCH_ADAPTERS } from '../../toolbox/web/search/adapters.ts';
import { SEARCH_TYPES, type SearchProvider } from '../../toolbox/web/search/provider.ts';
import { secretVariable } from './secret-variable.ts';

export interface ConfiguredSearch extends SearchProvider {
  keyEnvironment?: string;
}

/** Parses `{type, url, private, keyEnvironment}`. Throws TEMPER_MANIFEST_INVALID with the name of the field. */
export function parseSearch(file: string, value: unknown): ConfiguredSearch {
  if (!isJsonObject(value)) throw invalidMember(file, 'the value', 'must be an object with type');
  assertKnownMembers(file, '', value, ['type', 'url', 'private', 'keyEnvironment']);
  const type = SEARCH_TYPES.find((known) => known === value['type']);
  if (type === undefined) throw invalidMember(file, 'type', `must be one of ${SEARCH_TYPES.join(', ')}`);
  const adapter = SEARCH_ADAPTERS[type];
  const url = searchUrl(file, requiredText(file, 'url', value['url'] ?? adapter.defaultUrl));
  const { private: isPrivate = false, keyEnvironment } = value;
  if (typeof isPrivate !== 'boolean') throw invalidMember(file, 'private', 'must be true or false');
  if (keyEnvironment === undefined) {
    if (adapter.needsKey) throw invalidMember(file, 'keyEnvironment', `must name the variable with the key of ${type}`);
    return { type, url, isPrivate };
  }
  return { type, url, isPrivate, keyEnvironment: secretVariable(file, 'keyEnvironment', keyEnvironment) };
}

function searchUrl(file: string, text: string): string {
  const url = URL.parse(text);
  const isLocal = url?.protocol === 'http:' && url.hostname === 'localhost';
  if (url === null || (url.protocol !== 'https:' && !isLocal) || url.username !== '' || url.password !== '')
    throw invalidMember(file, 'url', 'must be an https URL without user name and password, or http on localhost');
  return url.href;
}
