// Command kube is every program of a Kubernetes control plane and node in one file.
//
// It only joins what the modules in go.mod already offer: the program is chosen by the name it
// is called by (a symbolic link), or by its first argument. Clusters that run side by side share
// the pages of this one file.
package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/etcdutl/v3/etcdutl"
	"go.etcd.io/etcd/server/v3/etcdmain"
	_ "k8s.io/client-go/plugin/pkg/client/auth"
	"k8s.io/component-base/cli"
	"k8s.io/component-base/logs"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	kubectl "k8s.io/kubectl/pkg/cmd"
	kubectlutil "k8s.io/kubectl/pkg/cmd/util"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	proxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
)

var programs = map[string]func() *cobra.Command{
	"kube-apiserver":          apiserver.NewAPIServerCommand,
	"kube-controller-manager": controllermanager.NewControllerManagerCommand,
	"kube-scheduler":          func() *cobra.Command { return scheduler.NewSchedulerCommand() },
	"kube-proxy":              proxy.NewProxyCommand,
	"kubelet":                 func() *cobra.Command { return kubelet.NewKubeletCommand(context.Background()) },
	"etcdutl":                 newEtcdutlCommand,
}

// These do not run as the others do.
var mains = map[string]func(){
	"etcd":    func() { etcdmain.Main(os.Args) },
	"kubectl": runKubectl,
}

func main() {
	name := filepath.Base(os.Args[0])
	if !known(name) && len(os.Args) > 1 {
		os.Args = os.Args[1:]
		name = os.Args[0]
	}
	if run, found := mains[name]; found {
		run()
		return
	}
	command, found := programs[name]
	if !found {
		fmt.Fprintf(os.Stderr, "call this file by one of these names: %s\n", strings.Join(names(), ", "))
		os.Exit(2)
	}
	os.Exit(cli.Run(command()))
}

func known(name string) bool {
	return slices.Contains(names(), name)
}

func names() []string {
	all := slices.Collect(maps.Keys(programs))
	return slices.Sorted(slices.Values(slices.AppendSeq(all, maps.Keys(mains))))
}

// runKubectl is kubectl's own main: it prints errors in its own words, and sets the verbosity early.
func runKubectl() {
	if _, err := logs.GlogSetter(kubectl.GetLogVerbosity(os.Args)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if err := cli.RunNoErrOutput(kubectl.NewDefaultKubectlCommand()); err != nil {
		kubectlutil.CheckErr(err)
	}
}

// newEtcdutlCommand is etcdutl's own main without its completion of shell words.
func newEtcdutlCommand() *cobra.Command {
	root := &cobra.Command{Use: "etcdutl", Short: "An administrative command line tool for etcd3."}
	root.PersistentFlags().StringVarP(&etcdutl.OutputFormat, "write-out", "w", "simple",
		"set the output format (fields, json, protobuf, simple, table)")
	root.AddCommand(
		etcdutl.NewDefragCommand(),
		etcdutl.NewSnapshotCommand(),
		etcdutl.NewHashKVCommand(),
		etcdutl.NewMigrateCommand(),
		etcdutl.NewVersionCommand(),
	)
	return root
}
