import { TemperError } from '../../lib/errors.ts';
import { printable } from '../../lib/printable.ts';
import { isInternalHostname } from '../../net/addresses.ts';
import type { NamedRepositories } from '../../toolbox/git/remote/port.ts';
import type { Steps } from './steps.ts';

/** Repositories of a platform whose connections nothing here names: each URL may have one. */
export class UnknownRepositories implements NamedRepositories {
  readonly owner = 'Platform';
  readonly #asked = new Map<string, { isPrivate: boolean }>();

  find(url: string): { isPrivate: boolean } {
    const isPrivate = isInternalHostname(URL.parse(url)?.hostname ?? '');
    this.#asked.set(url, { isPrivate });
    return { isPrivate };
  }

  /**
   * For a call that nothing else refuses. Throws TEMPER_USAGE for a host that only a connection opens: neither a denial nor a permission
   * would be true.
   */
  note(steps: Steps): void {
    for (const [url, { isPrivate }] of this.#asked) {
      const shown = printable(url, 300);
      if (isPrivate) {
        throw new TemperError(
          'TEMPER_USAGE',
          `the answer depends on gateway.connections of the release: only a connection with private: true and repository.url ${shown} opens this host; give the values of the release with --values FILE (helm get values RELEASE -o yaml)`,
        );
      }
      steps.note(
        'connection',
        'not-applicable',
        `whether gateway.connections of the release names ${shown} is not known; --values names them`,
      );
    }
  }
}
