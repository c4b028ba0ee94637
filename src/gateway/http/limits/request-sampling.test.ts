import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type EndedRequest, LOGGED_ONE_OF, RequestSampling } from './request-sampling.ts';

const OF_A_POD: EndedRequest = {
  route: '/v1/models/stream',
  status: 200,
  milliseconds: 5,
  isLongPoll: false,
  ofPod: true,
  isOutcome: false,
  isTraced: false,
};

describe('RequestSampling', () => {
  it('one of a hundred successful fast requests of pods is logged, per route and beginning with the first', () => {
    const sampling = new RequestSampling();
    const logged = (route: string) =>
      Array.from({ length: 2 * LOGGED_ONE_OF }, () => sampling.isLogged({ ...OF_A_POD, route })).flatMap((is, index) =>
        is ? [index] : [],
      );
    assert.deepEqual(logged('/v1/models/stream'), [0, LOGGED_ONE_OF]);
    assert.deepEqual(logged('/v1/reports'), [0, LOGGED_ONE_OF]);
  });
  it('every failure, every slow request, every request of a user, every end of a delivery and every traced one is logged', () => {
    const sampling = new RequestSampling();
    sampling.isLogged(OF_A_POD);
    const always: Partial<EndedRequest>[] = [
      { status: 429 },
      { status: 500 },
      { milliseconds: 1_000 },
      { ofPod: false },
      { isOutcome: true },
      { isTraced: true },
    ];
    for (const change of always) {
      for (let call = 0; call < 3; call += 1)
        assert.ok(sampling.isLogged({ ...OF_A_POD, ...change }), JSON.stringify(change));
    }
    assert.ok(!sampling.isLogged({ ...OF_A_POD, milliseconds: 25_000, isLongPoll: true }), 'a long poll is not slow');
  });
});
