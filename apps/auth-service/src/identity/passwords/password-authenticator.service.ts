import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { Metrics } from '@platform/service-defaults';
import type { DataSource } from 'typeorm';
import { userNameKey } from '../identity';
import { IdentityDirectory } from '../identity-directory.service';
import { PasswordHasher } from './password-hasher.service';
import { settlePasswordAttempt } from './settle-password-attempt.query';

/** Checks a user name and password against the stores. Where two unlinked accounts share a name, the first store's password counts here
 *  and the user is refused afterwards, as ambiguous. */
@Injectable()
export class PasswordAuthenticator {
  private readonly lockouts;

  constructor(
    private readonly directory: IdentityDirectory,
    private readonly hasher: PasswordHasher,
    @InjectDataSource() private readonly dataSource: DataSource,
    metrics: Metrics,
  ) {
    this.lockouts = metrics.counter(
      'auth_password_lockouts_total',
      'Accounts locked after wrong passwords in a row, unknown names included',
    );
  }

  /** True for the right password of an account that is not locked. Unknown, passwordless, locked and wrong take the same steps,
   *  so neither the answer nor its time tells them apart. */
  async isRight(userName: string, password: string): Promise<boolean> {
    const stored = await this.directory.findPassword(userName);
    const { verified, upgradedHash } = await this.hasher.verify(stored?.hash ?? null, password);
    const outcome = await settlePasswordAttempt(this.dataSource, userNameKey(userName), verified);
    if (outcome === 'locked-out') this.lockouts.inc();
    const admitted = outcome === 'admitted';
    if (admitted && stored !== null && upgradedHash !== null) {
      await this.directory.upgradePassword(stored, upgradedHash);
    }
    return admitted;
  }
}
