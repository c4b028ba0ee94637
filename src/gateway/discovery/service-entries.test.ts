import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { LexicalIndex } from '../../discovery/lexical/lexical-index.ts';
import { search } from '../../discovery/lexical/search.ts';
import { systemClock } from '../../lib/clock.ts';
import { createDecider } from '../../policy/decider.ts';
import { aSnapshot } from '../../policy/policy.testing.ts';
import { openServiceTools } from '../services/start.ts';
import { EntryVisibility } from './entry-visibility.ts';
import { pruneCapability } from './catalog-entries.ts';
import { ServiceEntries } from './service-entries.ts';

const SEARCH = { type: 'SearXNG', url: 'http://searxng.svc:8080/', private: true } as const;
const tools = openServiceTools({
  webSearch: { ...SEARCH, namespaces: ['team-a'] },
  databases: [],
  clock: systemClock,
  deliveryTokens: { sign: () => '' },
});
const { entry: guide = assert.fail() } = pruneCapability({
  metadata: { name: 'guide', namespace: 'team-a' },
  spec: { type: 'Skill', description: 'How to search the web.', content: 'x' },
} as never);

describe('the tools of services in searches', () => {
  const services = new ServiceEntries();
  const found = (namespace: string, granted: string[], query = 'search the web') => {
    const decider = createDecider(aSnapshot({ agent: { grants: { tools: granted } } }));
    const indexes = [services.index(tools.list(namespace)), LexicalIndex.of([guide])];
    return search({ query }, { indexes, permits: new EntryVisibility().of('analyst', decider) });
  };
  const ids = (...asked: Parameters<typeof found>) => found(...asked).map(({ entry }) => entry.id);

  it('an agent of the namespace that may call the tool finds it', () => {
    assert.deepEqual(ids('team-a', ['web_search']), ['tool:web_search', 'skill:guide']);
    assert.deepEqual(ids('team-b', ['web_search']), ['skill:guide'], 'the service is for another namespace');
  });

  it('an agent that may not call the tool finds the same, with the same relevance, as where there is no service', () => {
    for (const query of ['search the web', 'serach', 'web_search', 'snippet']) {
      assert.deepEqual(found('team-a', ['file_read'], query), found('team-b', ['file_read'], query), query);
    }
    assert.deepEqual(ids('team-a', ['file_read']), ['skill:guide']);
  });

  it('the entry of a tool stays the same, so that a decision about it is made once', () => {
    const [one, other] = [0, 1].map(() => services.index(tools.list('team-a')).withId('tool:web_search')[0]?.entry);
    assert.ok(one !== undefined && one === other);
  });
});
