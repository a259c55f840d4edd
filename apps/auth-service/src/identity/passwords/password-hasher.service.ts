import { Inject, Injectable, Logger } from '@nestjs/common';
import type { OnModuleInit } from '@nestjs/common';
import { hash as argon2 } from '@node-rs/argon2';
import { Metrics } from '@platform/service-defaults';
import { randomUUID } from 'node:crypto';
import { AUTH_CONFIG } from '../../config';
import type { AuthConfig } from '../../config';
import { BoundedWork } from './bounded-work';
import { ARGON2ID_COST, costsArgon2, needsUpgrade, readPasswordHash, verifyPassword } from './password-hash';
import { lowerWorkerPriority } from './worker-priority';

/** Verifies and makes password hashes, a bounded number at a time: hashing takes a core for tens of milliseconds, and a flood
 *  of logins must not take the rest of the service with it. */
@Injectable()
export class PasswordHasher implements OnModuleInit {
  private readonly logger = new Logger(PasswordHasher.name);
  private readonly work: BoundedWork;
  private readonly hashes;
  private dummyHash = '';

  constructor(@Inject(AUTH_CONFIG) config: AuthConfig, metrics: Metrics) {
    this.hashes = metrics.counter('auth_password_hashes_total', 'argon2id computations for logins');
    this.work = new BoundedWork(config.PASSWORD_HASH_CONCURRENCY, config.PASSWORD_HASH_QUEUE);
  }

  async onModuleInit(): Promise<void> {
    this.dummyHash = await argon2(randomUUID(), ARGON2ID_COST);
    try {
      lowerWorkerPriority();
    } catch (error) {
      // It only makes room for others: a system that refuses it, or a thread that ends meanwhile, is no reason not to start.
      this.logger.warn('hashing keeps its priority', { err: error });
    }
  }

  /** Verifies a password at the price of one argon2id hash, whatever is stored: nothing at all costs a dummy, and a cheap legacy
   *  scheme pays on top. `upgradedHash` is set when the password is right and its hash should be replaced.
   *  @throws {TooMuchWorkError} when too many hashes are waiting already */
  verify(
    stored: string | null,
    password: string,
  ): Promise<{ verified: boolean; upgradedHash: string | null }> {
    return this.work.run(async () => {
      const hash = readPasswordHash(stored ?? this.dummyHash);
      if (costsArgon2(hash)) this.hashes.inc();
      const verified = (await verifyPassword(hash, password)) && stored !== null;
      if (!needsUpgrade(hash) || (!verified && costsArgon2(hash))) return { verified, upgradedHash: null };
      // A wrong legacy password pays for the hash too, or its quick answer would tell that the account exists.
      this.hashes.inc();
      const upgradedHash = await argon2(password, ARGON2ID_COST);
      return { verified, upgradedHash: verified ? upgradedHash : null };
    });
  }
}
