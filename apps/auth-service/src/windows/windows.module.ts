import { Module } from '@nestjs/common';
import { AUTH_CONFIG } from '../config';
import { WindowsSignIn, chooseSignIn } from './windows-sign-in';
import { WindowsTicketsRepository } from './windows-tickets.repository';

/** Windows authentication, in the configured way. */
@Module({
  providers: [
    WindowsTicketsRepository,
    { provide: WindowsSignIn, inject: [AUTH_CONFIG, WindowsTicketsRepository], useFactory: chooseSignIn },
  ],
  exports: [WindowsSignIn],
})
export class WindowsModule {}
