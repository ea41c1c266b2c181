#!/bin/sh
# Runs inside the new root, as its root, after all packages are there. What is left here is in every sandbox of `base`.
set -eu

# The user that commands run as: may become root without a password, and keeps what it installs in its own home.
useradd --create-home --uid 1000 --user-group --shell /bin/bash user
install -m 0440 /dev/null /etc/sudoers.d/user
echo 'user ALL=(ALL) NOPASSWD: ALL' >/etc/sudoers.d/user
printf 'prefix=/home/user/.local\n' >/home/user/.npmrc
chown user:user /home/user/.npmrc

# A sandbox is one throw-away machine: pip may install beside Debian's own packages.
printf '[global]\nbreak-system-packages = true\ndisable-pip-version-check = true\n' >/etc/pip.conf

# 18 MB of names that only a debugger of Node.js itself would read. What is left must run.
strip --strip-unneeded /usr/local/bin/node
node --version
npm --version
python3 -m venv --help >/dev/null

# Programs here run after every wake, before the workload goes on.
install -d -m 0755 /etc/space /etc/space/wake.d

# The agent sets name and resolver of each sandbox; until then nothing of the building host is to be seen. A sandbox
# knows its own name without asking anybody.
echo sandbox >/etc/hostname
printf '127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n' >/etc/hosts
printf 'nameserver 169.254.0.22\n' >/etc/resolv.conf
sed -i 's/^hosts:.*/hosts: files myhostname dns/' /etc/nsswitch.conf

# Each sandbox is its own machine: no identity, no log and no cache is shared.
rm -f /etc/machine-id /var/lib/dbus/machine-id /etc/ssh/ssh_host_* /etc/fstab
: >/etc/machine-id
find /var/log -type f -delete
rm -rf /var/lib/apt/lists/* /var/cache/apt/*.bin /var/cache/apt/archives/*.deb /var/cache/debconf/*-old \
  /var/cache/ldconfig/aux-cache /var/lib/dpkg/*-old /tmp/* /var/tmp/* /root/.cache /run/*
