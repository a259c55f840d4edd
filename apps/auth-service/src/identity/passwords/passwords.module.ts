import { Module } from '@nestjs/common';
import type { DynamicModule } from '@nestjs/common';
import type { IdentityStore } from '../combined-stores.repository';
import { STORES } from '../single-stores.repository';
import { PasswordLockoutsRepository } from './password-lockouts.repository';
import { PasswordsService } from './passwords.service';
import { StoredPasswordsRepository } from './stored-passwords.repository';

/** Passwords of the users of all identity stores. */
@Module({})
export class PasswordsModule {
  static forRoot(identity: DynamicModule): DynamicModule {
    return {
      module: PasswordsModule,
      imports: [identity],
      providers: [
        {
          provide: StoredPasswordsRepository,
          inject: Object.values(STORES),
          useFactory: (...stores: IdentityStore[]) => new StoredPasswordsRepository(stores),
        },
        PasswordLockoutsRepository,
        PasswordsService,
      ],
      exports: [PasswordsService],
    };
  }
}
