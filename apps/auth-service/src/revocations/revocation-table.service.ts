import { Injectable } from '@nestjs/common';
import type { Revocation, RevocationPage, RevocationSource } from '@platform/access-tokens';
import { toWire } from './revocation';
import { RevocationsRepository } from './revocations.repository';
import type { RevocationPosition } from './revocations.repository';

const PAGE_SIZE = 2_000;

/** The revocation source of this service's own guard. It reads the table directly. */
@Injectable()
export class RevocationTable implements RevocationSource {
  constructor(private readonly repository: RevocationsRepository) {}

  async *changesSince(
    since: Date,
    signal?: AbortSignal,
    tellPresent?: (present: Date) => void,
  ): AsyncGenerator<readonly Revocation[]> {
    for (let from: Date | string | null = since; from !== null;) {
      const page: RevocationPage = await this.readPage(from, signal);
      if (page.present !== null) tellPresent?.(page.present);
      yield page.revocations;
      from = page.next;
    }
  }

  async readPage(from: Date | string, signal?: AbortSignal): Promise<RevocationPage> {
    signal?.throwIfAborted();
    const after = typeof from === 'string' ? readPosition(from) : null;
    // Read before the list. Pollers count back from this time; a later one could make them miss a revocation.
    const present = await this.repository.present();
    const since = typeof from === 'string' ? new Date(0) : from;
    const rows = await this.repository.list(since, PAGE_SIZE, after);
    const last = rows.length < PAGE_SIZE ? undefined : rows.at(-1);
    return {
      revocations: rows.map(toWire),
      next: last === undefined ? null : writePosition(last),
      present,
    };
  }
}

function writePosition({ revocationDate, domain, identifier }: RevocationPosition): string {
  return JSON.stringify([revocationDate.toISOString(), domain, identifier]);
}

function readPosition(text: string): RevocationPosition {
  const [date, domain, identifier] = JSON.parse(text) as [string, string, string];
  return { revocationDate: new Date(date), domain, identifier };
}
