import { Inject, Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import type { DataSource } from 'typeorm';
import type { IdentityStore, StoredPassword } from '../identity';
import { userNameKey } from '../identity';
import { IDENTITY_STORES } from '../identity-stores';
import { PasswordHasher } from './password-hasher.service';
import { settlePasswordAttempt } from './settle-password-attempt.query';

/** Checks a user name and password against the stores. */
@Injectable()
export class PasswordAuthenticator {
  constructor(
    @Inject(IDENTITY_STORES) private readonly stores: readonly IdentityStore[],
    private readonly hasher: PasswordHasher,
    @InjectDataSource() private readonly dataSource: DataSource,
  ) {}

  /** True for the right password of an account that is not locked. Unknown, passwordless, locked and wrong take the same steps,
   *  so neither the answer nor its time tells them apart. */
  async isRight(userName: string, password: string): Promise<boolean> {
    const stored = await this.findPassword(userName);
    const { verified, upgradedHash } = await this.hasher.verify(stored?.hash ?? null, password);
    const admitted = await settlePasswordAttempt(this.dataSource, userNameKey(userName), verified);
    if (admitted && stored !== null && upgradedHash !== null) {
      const store = this.stores.find((each) => each.name === stored.store);
      await store?.upgradePassword(stored, upgradedHash);
    }
    return admitted;
  }

  /** The password of the first store that has one. Two unlinked accounts of one name are refused later, as ambiguous. */
  private async findPassword(userName: string): Promise<StoredPassword | null> {
    const answers = await Promise.all(this.stores.map((store) => store.findPassword(userName)));
    return answers.find((answer) => answer !== null) ?? null;
  }
}
