import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import type { Revocation, RevocationSource } from '@platform/access-tokens';
import type { DataSource } from 'typeorm';
import type { RevocationPosition } from './list-revocations.query';
import { listRevocations } from './list-revocations.query';
import { formatRevocationDate } from './revocation';

const PAGE_SIZE = 10_000;

/** Feeds this service's own guard straight from the table. */
@Injectable()
export class DatabaseRevocationSource implements RevocationSource {
  constructor(@InjectDataSource() private readonly dataSource: DataSource) {}

  async *changesSince(since: Date, signal?: AbortSignal): AsyncGenerator<readonly Revocation[]> {
    let after: RevocationPosition | null = null;
    for (;;) {
      signal?.throwIfAborted();
      const rows = await listRevocations(this.dataSource, since, PAGE_SIZE, after);
      yield rows.map((row) => ({ ...row, revocationDate: formatRevocationDate(row.revocationDate) }));
      if (rows.length < PAGE_SIZE) return;
      after = rows.at(-1)!;
    }
  }
}
